{{- /* The ConfigMap with the CA certificates, and the key that holds them; no name without any. */ -}}
{{- define "cinder-csi.ca" -}}
{{- $v := .Values -}}
{{- $given := 0 -}}
{{- range list $v.caBundle $v.caConfigMap.name $v.credentials.caKey $v.trustedCA }}{{ if . }}{{ $given = add1 $given }}{{ end }}{{ end -}}
{{- if gt $given 1 }}{{ fail "caBundle, caConfigMap, credentials.caKey and trustedCA exclude each other: the driver trusts the certificates of one file" }}{{ end -}}
{{- if $v.trustedCA }}
configMap: cinder-csi-trusted-ca
key: ca-bundle.crt
{{- else if $v.caConfigMap.name }}
configMap: {{ $v.caConfigMap.name | quote }}
key: {{ $v.caConfigMap.key | quote }}
{{- else if $v.caBundle }}
configMap: cinder-csi-ca
key: ca.pem
{{- else }}
configMap: ""
{{- end }}
{{- end -}}

{{- define "cinder-csi.caVolume" -}}
{{- $ca := include "cinder-csi.ca" . | fromYaml -}}
configMap:
  name: {{ $ca.configMap | quote }}
  items:
  - key: {{ $ca.key | quote }}
    path: ca.pem
{{- end -}}
