{{- /* The user that the API server takes the manager for. */ -}}
{{- define "ebbtide.user" -}}
system:serviceaccount:{{ .Release.Namespace }}:{{ .Values.serviceAccount.name }}
{{- end }}

{{- /* The namespace of the agents of nodes; values of an older chart have none. */ -}}
{{- define "ebbtide.agentNamespace" -}}
{{ get .Values.agent "namespace" | default "ebbtide-agents" }}
{{- end }}

{{- /* The user that it takes these agents for. */ -}}
{{- define "ebbtide.agentUser" -}}
system:serviceaccount:{{ include "ebbtide.agentNamespace" . }}:ebbtide-agent
{{- end }}

{{- /* The user that it takes the hook of an uninstall for. */ -}}
{{- define "ebbtide.uninstallUser" -}}
system:serviceaccount:{{ .Release.Namespace }}:ebbtide-uninstall
{{- end }}

{{- /* The port on which the managers serve webhooks; values of an older chart have none. */ -}}
{{- define "ebbtide.webhookPort" -}}
{{ .Values.webhook.port | default 9443 }}
{{- end }}

{{- /* The namespaces where rollouts may run Jobs, as JSON; values of an older chart have none. */ -}}
{{- define "ebbtide.jobNamespaces" -}}
{{ get (get .Values "rollouts" | default dict) "jobNamespaces" | default list | toJson }}
{{- end }}

{{- /* The binding of a policy that denies. */ -}}
{{- define "ebbtide.denies" -}}
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata:
  name: {{ . }}
spec:
  policyName: {{ . }}
  validationActions: [Deny]
{{- end }}

{{- /* The keys that differ between the two maps of a pair, each after a word. Those that are
     added count where an expression says so. */ -}}
{{- define "ebbtide.differs" -}}
variables.{{ .pair }}[1].map(k, k in variables.{{ .pair }}[0] ? variables.{{ .pair }}[0][k] != variables.{{ .pair }}[1][k] : {{ get . "added" | default "true" }}, '{{ .word }}' + k) +
variables.{{ .pair }}[0].map(k, !(k in variables.{{ .pair }}[1]), '{{ .word }}' + k)
{{- end }}

{{- /* Whether a key k that is added to labels or annotations is reserved: its domain is one of
     Kubernetes, of its providers or of Ebbtide, or the object has enough of them. */ -}}
{{- define "ebbtide.reserved" -}}
variables.{{ . }}[1].size() > 1000 || k.matches('^([^/]*[.])?(kubernetes[.]io|k8s[.]io|x-k8s[.]io|openshift[.]io|karpenter[.]sh|ebbtide[.]dev)/')
{{- end }}

{{- /* What roles are bound to: an account of the release's namespace or another, or a group. */ -}}
{{- define "ebbtide.subjects" -}}
subjects:
{{- with get . "account" }}
- kind: ServiceAccount
  name: {{ . | quote }}
  namespace: {{ get $ "namespace" | default $.root.Release.Namespace | quote }}
{{- end }}
{{- with get . "group" }}
- kind: Group
  apiGroup: rbac.authorization.k8s.io
  name: {{ . | quote }}
{{- end }}
{{- end }}

{{- /* Where the API server calls a webhook, and whom it trusts there if a value says so. */ -}}
{{- define "ebbtide.webhook" -}}
service: {namespace: {{ .root.Release.Namespace | quote }}, name: ebbtide-webhook, path: {{ .path }}}
{{- with .root.Values.webhook.caBundle }}
caBundle: {{ b64enc . }}
{{- end }}
{{- end }}

{{- /* The group of agents that are units of their hosts, where they are let in. */ -}}
{{- define "ebbtide.agentGroup" -}}
{{- if .Values.agent.hosts }}ebbtide:agents{{ end -}}
{{- end }}

{{- /* The roles of a file and their bindings, for an account, and with annotations. */ -}}
{{- define "ebbtide.roles" -}}
{{- range $document := splitList "---\n" (.root.Files.Get .file) }}
{{- with $role := fromYaml $document }}
{{- $metadata := dict "name" $role.metadata.name }}
{{- if eq $role.kind "Role" }}
{{- $_ := set $metadata "namespace" (ternary $.root.Release.Namespace $role.metadata.namespace (eq $role.metadata.namespace "release")) }}
{{- end }}
{{- with get $ "annotations" }}
{{- $_ := set $metadata "annotations" . }}
{{- end }}
---
apiVersion: {{ $role.apiVersion }}
kind: {{ $role.kind }}
metadata:
  {{- toYaml $metadata | nindent 2 }}
rules:
{{ toYaml $role.rules }}
---
apiVersion: {{ $role.apiVersion }}
kind: {{ $role.kind }}Binding
metadata:
  {{- toYaml $metadata | nindent 2 }}
roleRef:
  apiGroup: rbac.authorization.k8s.io
  kind: {{ $role.kind }}
  name: {{ $role.metadata.name }}
{{ include "ebbtide.subjects" $ }}
{{- end }}
{{- end }}
{{- end }}

{{- /* An account of a hook, and the rights that it needs; they are gone when the hook is over. */ -}}
{{- define "ebbtide.hookAccount" -}}
{{- $annotations := dict "helm.sh/hook" .hook "helm.sh/hook-weight" "-1" "helm.sh/hook-delete-policy" "before-hook-creation,hook-succeeded,hook-failed" }}
apiVersion: v1
kind: ServiceAccount
metadata:
  name: {{ .account }}
  namespace: {{ .root.Release.Namespace | quote }}
  annotations:
    {{- toYaml $annotations | nindent 4 }}
{{- include "ebbtide.roles" (merge (dict "annotations" $annotations) .) }}
{{- end }}

{{- /* What a pod of a hook has: the binary of the manager with another verb. It goes to a
     cordoned node, too: there may be no other. */ -}}
{{- define "ebbtide.hookPod" -}}
serviceAccountName: {{ .account }}
automountServiceAccountToken: true
enableServiceLinks: false
restartPolicy: Never
priorityClassName: {{ .root.Values.priorityClassName | quote }}
{{- with .root.Values.imagePullSecrets }}
imagePullSecrets:
{{- toYaml . | nindent 0 }}
{{- end }}
{{ include "ebbtide.podSecurity" .root }}
{{- with .root.Values.nodeSelector }}
nodeSelector:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .root.Values.affinity }}
affinity:
  {{- toYaml . | nindent 2 }}
{{- end }}
tolerations:
- {key: node.kubernetes.io/unschedulable, operator: Exists, effect: NoSchedule}
{{- with .root.Values.tolerations }}
{{- toYaml . | nindent 0 }}
{{- end }}
containers:
- name: {{ .verb }}
  image: {{ include "ebbtide.image" .root | quote }}
  imagePullPolicy: {{ .root.Values.image.pullPolicy }}
  args:
  {{- toYaml .args | nindent 2 }}
  resources:
    requests: {cpu: 50m, memory: 64Mi}
  {{- include "ebbtide.containerSecurity" .root | nindent 2 }}
{{- end }}

{{- /* The image of the manager, by its content where that is pinned. */ -}}
{{- define "ebbtide.image" -}}
{{- with .Values.image -}}
{{- $repository := .repository }}
{{- with get . "registry" }}
{{- $repository = printf "%s/%s" . (regexReplaceAll "^[^/]*[.:][^/]*/" $repository "") }}
{{- end }}
{{- $repository }}{{ if .digest }}@{{ .digest }}{{ else }}:{{ .tag | default $.Chart.AppVersion }}{{ end }}
{{- end -}}
{{- end }}

{{- /* How every pod of ours runs: as nobody, with nothing. */ -}}
{{- define "ebbtide.podSecurity" -}}
securityContext:
  {{- $context := .Values.podSecurityContext | default dict }}
  {{- if .Capabilities.APIVersions.Has "security.openshift.io/v1" }}
  {{- $context = omit $context "runAsUser" "runAsGroup" }}
  {{- end }}
  {{- toYaml $context | nindent 2 }}
{{- end }}
{{- define "ebbtide.containerSecurity" -}}
securityContext:
  {{- get .Values "securityContext" | default (dict "allowPrivilegeEscalation" false "readOnlyRootFilesystem" true "capabilities" (dict "drop" (list "ALL"))) | toYaml | nindent 2 }}
{{- end }}

{{- /* The labels of an object or pod of the chart, by the name of what it is a part of, and more. */ -}}
{{- define "ebbtide.labels" -}}
{{- merge (dict
    "app.kubernetes.io/name" .name
    "app.kubernetes.io/instance" .root.Release.Name
    "app.kubernetes.io/version" .root.Chart.AppVersion
    "app.kubernetes.io/part-of" "ebbtide"
    "app.kubernetes.io/managed-by" .root.Release.Service)
    (get . "more" | default dict) (get .root.Values "commonLabels" | default dict) | toYaml }}
{{- end }}

{{/*
Whether variables.m, with the terms of its selector in variables.terms, is the
NodeMaintenance of one node that shuts down. A name that would be too long ends in a hash.
*/}}
{{- define "ebbtide.ofShutdown" -}}
variables.m.metadata.?labels[?'ebbtide.dev/created-by'].orValue('') == 'node-agent' && variables.terms.size() == 1 &&
!has(variables.terms[0].matchExpressions) && variables.terms[0].?matchFields.orValue([]).size() == 1 &&
variables.terms[0].matchFields[0].key == 'metadata.name' && variables.terms[0].matchFields[0].operator == 'In' &&
variables.terms[0].matchFields[0].values.size() == 1 &&
(variables.m.metadata.name == 'node-shutdown-' + variables.terms[0].matchFields[0].values[0] ||
variables.m.metadata.name.size() == 253 && variables.m.metadata.name.startsWith('node-shutdown.') &&
variables.terms[0].matchFields[0].values[0].startsWith(variables.m.metadata.name.substring(14, 221)))
{{- end }}

{{/*
Whether variables.m, with the terms of its selector in variables.terms, is the
NodeMaintenance of one node for the Machine of another controller. Earlier versions named
them machine-<namespace>-<name>; the manager deletes those, and makes none.
*/}}
{{- define "ebbtide.ofBridge" -}}
variables.m.metadata.?labels[?'ebbtide.dev/bridge'].orValue('') in ['cluster-api', 'openshift'] && variables.terms.size() == 1 &&
variables.m.metadata.?annotations[?'ebbtide.dev/bridge-machine'].orValue('').matches('^[^./]+/[^/]+$') &&
(variables.m.metadata.name == variables.m.metadata.labels['ebbtide.dev/bridge'] + '.' + variables.m.metadata.annotations['ebbtide.dev/bridge-machine'].replace('/', '.') ||
variables.m.metadata.name.size() == 253 && variables.m.metadata.name.startsWith(variables.m.metadata.labels['ebbtide.dev/bridge'] + '-long.' +
variables.m.metadata.annotations['ebbtide.dev/bridge-machine'].split('/')[0] + '.') ||
request.operation == 'DELETE' &&
variables.m.metadata.name.startsWith('machine-' + variables.m.metadata.annotations['ebbtide.dev/bridge-machine'].split('/')[0] + '-')) &&
!has(variables.terms[0].matchExpressions) && variables.terms[0].?matchFields.orValue([]).size() == 1 &&
variables.terms[0].matchFields[0].key == 'metadata.name' && variables.terms[0].matchFields[0].operator == 'In' &&
variables.terms[0].matchFields[0].values.size() == 1 && !has(variables.m.spec.deadline) &&
variables.m.spec.?drainDepth.orValue('') == 'Default' && (request.operation == 'DELETE' || variables.m.spec.?stage.orValue('') == 'Drain')
{{- end }}

{{/*
Whether variables.m, with the terms of its selector in variables.terms, is the
NodeMaintenance of one node for a NodeRollout. Its deadline only gives back.
*/}}
{{- define "ebbtide.ofRollout" -}}
variables.m.metadata.?labels[?'ebbtide.dev/rollout'].orValue('') != '' && variables.terms.size() == 1 &&
'ebbtide.dev/rollout-attempt' in variables.m.metadata.?annotations.orValue({}) &&
variables.m.metadata.name.startsWith(variables.m.metadata.labels['ebbtide.dev/rollout'] + '-') &&
!has(variables.terms[0].matchExpressions) && variables.terms[0].?matchFields.orValue([]).size() == 1 &&
variables.terms[0].matchFields[0].key == 'metadata.name' && variables.terms[0].matchFields[0].operator == 'In' &&
variables.terms[0].matchFields[0].values.size() == 1 &&
(!has(variables.m.spec.deadline) || variables.m.spec.deadline.?onDeadline.orValue('') == 'GiveBack')
{{- end }}
