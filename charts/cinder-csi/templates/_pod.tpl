{{- /* The user of pods that do not run as root; empty where the platform selects it. A security context constraint of OpenShift admits only users of
the range of the namespace. */ -}}
{{- define "cinder-csi.user" -}}
{{- $user := .Values.controller.runAsUser -}}
{{- if kindIs "string" $user -}}
{{- $user = eq .Values.target "vanilla" | ternary 65532 0 -}}
{{- end -}}
{{- with $user -}}
runAsUser: {{ . | int64 }}
runAsGroup: {{ . | int64 }}
fsGroup: {{ . | int64 }}
{{- end -}}
{{- end -}}

{{- /* (values, tolerations): with that of the start-up taint where the driver removes it, unless one tolerates every taint. On a new cluster each
node has the taint, and the controller must run somewhere. */ -}}
{{- define "cinder-csi.tolerations" -}}
{{- $tolerations := .tolerations | default list -}}
{{- $all := not .values.nodeLifecycle.startupTaint -}}
{{- range $tolerations -}}
{{- if and (eq (get . "operator" | default "") "Exists") (not (get . "key")) (not (get . "effect")) }}{{ $all = true }}{{ end -}}
{{- end -}}
{{- if not $all -}}
{{- $tolerations = append $tolerations (dict "key" (print .values.driver.name "/agent-not-ready") "operator" "Exists") -}}
{{- end -}}
{{- dict "tolerations" $tolerations | toJson -}}
{{- end -}}

{{- /* The pod's token as automountServiceAccountToken would mount it into every container. */ -}}
{{- define "cinder-csi.apiAccessVolume" -}}
- name: api-access
  projected:
    sources:
    - serviceAccountToken:
        path: token
        expirationSeconds: 3600
    - configMap:
        name: kube-root-ca.crt
        items:
        - key: ca.crt
          path: ca.crt
{{- end -}}

{{- /* (namespace): HyperShift places the pods of one hosted control plane together. */ -}}
{{- define "cinder-csi.hostedAffinity" -}}
nodeAffinity:
  preferredDuringSchedulingIgnoredDuringExecution:
  - weight: 50
    preference:
      matchExpressions:
      - key: hypershift.openshift.io/control-plane
        operator: In
        values:
        - "true"
  - weight: 100
    preference:
      matchExpressions:
      - key: hypershift.openshift.io/cluster
        operator: In
        values:
        - {{ . | quote }}
podAffinity:
  preferredDuringSchedulingIgnoredDuringExecution:
  - weight: 100
    podAffinityTerm:
      labelSelector:
        matchLabels:
          hypershift.openshift.io/hosted-control-plane: {{ . | quote }}
      topologyKey: kubernetes.io/hostname
{{- end -}}

{{- /* A kubelet may read the Secrets of the pods on its node. So pods with the credentials of the project prefer nodes without the pods of tenants. */ -}}
{{- define "cinder-csi.controlPlaneAffinity" -}}
nodeAffinity:
  preferredDuringSchedulingIgnoredDuringExecution:
  - weight: 100
    preference:
      matchExpressions:
      - key: node-role.kubernetes.io/control-plane
        operator: Exists
{{- end -}}

{{- /* What the values of a role say about its pods, except its affinity. */ -}}
{{- define "cinder-csi.placement" -}}
priorityClassName: {{ .priorityClassName | quote }}
nodeSelector:
  {{- toYaml (mergeOverwrite (dict) (.nodeSelector | default dict) (dict "kubernetes.io/os" "linux")) | nindent 2 }}
tolerations: {{ toJson .tolerations }}
{{- if .imagePullSecrets }}
imagePullSecrets:
{{- range .imagePullSecrets }}
- name: {{ . | quote }}
{{- end }}
{{- end }}
{{- with .topologySpreadConstraints }}
topologySpreadConstraints:
{{ toYaml . }}
{{- end }}
{{- with .hostAliases }}
hostAliases:
{{ toYaml . }}
{{- end }}
{{- with .dnsPolicy }}
dnsPolicy: {{ . }}
{{- end }}
{{- with .dnsConfig }}
dnsConfig:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .initContainers }}
initContainers:
{{ toYaml . }}
{{- end }}
{{- end -}}
