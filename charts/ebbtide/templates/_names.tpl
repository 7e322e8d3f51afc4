{{- /* The user that the API server takes the manager for. */ -}}
{{- define "ebbtide.user" -}}
system:serviceaccount:{{ .Release.Namespace }}:{{ .Values.serviceAccount.name }}
{{- end }}

{{- /* What roles are bound to. */ -}}
{{- define "ebbtide.subjects" -}}
subjects:
- kind: ServiceAccount
  name: {{ .Values.serviceAccount.name | quote }}
  namespace: {{ .Release.Namespace | quote }}
{{- end }}
