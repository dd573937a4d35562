{{- define "operator.name" -}}
{{- if contains .Chart.Name .Release.Name -}}
{{- .Release.Name | trunc 63 | trimSuffix "-" -}}
{{- else -}}
{{- printf "%s-%s" .Release.Name .Chart.Name | trunc 63 | trimSuffix "-" -}}
{{- end -}}
{{- end -}}

{{- define "operator.selector" -}}
app.kubernetes.io/name: {{ .Chart.Name }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end -}}

{{- define "operator.labels" -}}
{{ include "operator.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version }}
{{- end -}}

{{/* Of the operator's pods and of helm test's: what the user adds. */}}
{{- define "operator.placement" -}}
{{- with .Values.nodeSelector }}
nodeSelector: {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .Values.tolerations }}
tolerations: {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .Values.affinity }}
affinity: {{- toYaml . | nindent 2 }}
{{- end }}
{{- end -}}

{{/* Of an image's values, with the chart: by digest where one is given, else by tag. */}}
{{- define "operator.image" -}}
{{- with .image -}}
{{- if .digest -}}
{{ .repository }}@{{ .digest }}
{{- else -}}
{{ .repository }}:{{ .tag | default $.chart.AppVersion }}
{{- end -}}
{{- end -}}
{{- end -}}

{{/* What restricted pod security asks of a pod, and of a container. */}}
{{- define "operator.podSecurity" -}}
runAsNonRoot: true
seccompProfile:
  type: RuntimeDefault
{{- end -}}

{{- define "operator.containerSecurity" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
capabilities:
  drop: [ALL]
{{- end -}}

{{/* The pods of models' engines, and the ports on which the operator talks to them: vLLM's own, and
the plugin's page. */}}
{{- define "operator.enginePods" -}}
app.kubernetes.io/managed-by: speculative-operator
app.kubernetes.io/component: engine
{{- end -}}

{{- define "operator.enginePorts" -}}
- port: 8000
- port: 9405
{{- end -}}

{{/* A RoleBinding or ClusterRoleBinding's end: the role of the same name, for the operator. */}}
{{- define "operator.bound" -}}
roleRef:
  apiGroup: rbac.authorization.k8s.io
  kind: {{ .kind }}
  name: {{ .name }}
subjects:
  - kind: ServiceAccount
    name: {{ include "operator.name" .root }}
    namespace: {{ .root.Release.Namespace }}
{{- end -}}

{{/* What reconciling needs in a namespace: the exact kinds and verbs. A server-side apply is a patch,
and a create where the object is new. No Secret is ever read. */}}
{{- define "operator.rules" -}}
- apiGroups: [speculation.dev]
  resources: [speculativemodels]
  verbs: [list, watch]
- apiGroups: [speculation.dev]
  resources: [speculativemodels/status]
  verbs: [patch]
- apiGroups: [apps]
  resources: [controllerrevisions, deployments]
  verbs: [list, watch, create, patch, delete]
- apiGroups: [""]
  resources: [configmaps, serviceaccounts]
  verbs: [list, watch, create, patch, delete]
- apiGroups: [""]
  resources: [services]
  verbs: [list, watch, create, patch]
- apiGroups: [policy]
  resources: [poddisruptionbudgets]
  verbs: [list, watch, create, patch, delete]
- apiGroups: [""]
  resources: [pods]
  verbs: [list, watch, patch]
- apiGroups: [""]
  resources: [pods/eviction]
  verbs: [create]
- apiGroups: [events.k8s.io]
  resources: [events]
  verbs: [create]
{{- end -}}
