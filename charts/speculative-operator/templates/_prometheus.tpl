{{/* How the operator reaches the Prometheus of models with tuning.source: Prometheus. Token and
certificates are files, which the kubelet renews; the operator has no right to read Secrets. */}}
{{- define "operator.prometheusArguments" -}}
{{- with (.Values.monitoring).prometheus }}
{{- if .url }}
- --prometheus-url={{ .url }}
{{- if .tokenSecret }}
- --prometheus-token-file=/etc/prometheus-token/{{ .tokenSecret.key }}
{{- end }}
{{- if .caConfigMap }}
- --prometheus-ca-file=/etc/prometheus-ca/{{ .caConfigMap.key }}
{{- end }}
{{- end }}
{{- end }}
{{- end -}}

{{- define "operator.prometheusMounts" -}}
{{- with (.Values.monitoring).prometheus }}
{{- if and .url .tokenSecret }}
- name: prometheus-token
  mountPath: /etc/prometheus-token
  readOnly: true
{{- end }}
{{- if and .url .caConfigMap }}
- name: prometheus-ca
  mountPath: /etc/prometheus-ca
  readOnly: true
{{- end }}
{{- end }}
{{- end -}}

{{- define "operator.prometheusVolumes" -}}
{{- with (.Values.monitoring).prometheus }}
{{- if and .url .tokenSecret }}
- name: prometheus-token
  secret:
    secretName: {{ .tokenSecret.name }}
    items:
      - key: {{ .tokenSecret.key }}
        path: {{ .tokenSecret.key }}
{{- end }}
{{- if and .url .caConfigMap }}
- name: prometheus-ca
  configMap:
    name: {{ .caConfigMap.name }}
    items:
      - key: {{ .caConfigMap.key }}
        path: {{ .caConfigMap.key }}
{{- end }}
{{- end }}
{{- end -}}
