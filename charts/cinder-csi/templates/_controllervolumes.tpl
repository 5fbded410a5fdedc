{{- /* (root, plane, ca): the volumes of the controller pod. */ -}}
{{- define "cinder-csi.controllerVolumes" -}}
{{- $root := .root -}}
{{- $p := .plane -}}
{{- $ca := .ca -}}
- name: socket
  emptyDir: {}
- name: config
  configMap:
    name: cinder-csi-controller-config
- name: cloud
  projected:
    defaultMode: 288 # 0440
    sources:
    - secret:
        name: {{ $root.Values.credentials.secretName | quote }}
        items:
        - key: {{ $root.Values.credentials.key | quote }}
          path: clouds.yaml
    - secret:
        name: {{ $root.Values.credentials.secretName | quote }}
        items:
        - key: {{ $root.Values.credentials.caKey | default "cacert" | quote }}
          path: cacert
        optional: {{ not $root.Values.credentials.caKey }}
{{- if $ca.configMap }}
- name: ca
  {{- include "cinder-csi.caVolume" $root | nindent 2 }}
{{- end }}
{{- if $root.Values.monitoring.tls.enabled }}
- name: metrics-tls
  secret:
    secretName: cinder-csi-controller-metrics-tls
    defaultMode: 288 # 0440
{{- end }}
{{- if $p.hosted }}
- name: hosted-kubeconfig
  {{- if $p.guestToken }}
  # A token is never written to the disk of the node.
  emptyDir:
    medium: Memory
    sizeLimit: 1Mi
- name: admin-kubeconfig
  {{- end }}
  secret:
    secretName: {{ $root.Values.hypershift.kubeconfigSecret | quote }}
    defaultMode: 288 # 0440
{{- end }}
{{- if not $p.hosted }}
# What automountServiceAccountToken would mount into every container.
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
    - downwardAPI:
        items:
        - path: namespace
          fieldRef:
            apiVersion: v1
            fieldPath: metadata.namespace
{{- end }}
{{- end -}}
