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
  resources: [configmaps, serviceaccounts, services]
  verbs: [list, watch, create, patch, delete]
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
