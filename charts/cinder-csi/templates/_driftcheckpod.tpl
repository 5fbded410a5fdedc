{{- /* (root, ca): the container of the drift check, and its volumes. */ -}}
{{- define "cinder-csi.driftCheckContainers" -}}
{{- $root := .root -}}
{{- $ca := .ca -}}
containers:
- name: generator
  {{- include "cinder-csi.container" (dict "images" $root.Values.images "image" $root.Values.images.driftcheck.generator "settings" "cinder-csi-drift-check-settings") | nindent 2 }}
  args:
  - plan
  - --os-cloud=$(CLOUD)
  - --os-region-name=$(REGION)
  - --target=$(TARGET)
  - --config=/etc/cinder-csi/drift-check/distribution.yaml
  - --check=/etc/cinder-csi/drift-check/plan.yaml
  - --status-configmap=cinder-csi-drift-check-status
  {{- $env := list (dict "name" "OS_CLIENT_CONFIG_FILE" "value" "/etc/cinder-csi/cloud/clouds.yaml") }}
  {{- if $ca.configMap }}
  {{- $env = prepend $env (dict "name" "OS_CACERT" "value" "/etc/cinder-csi/ca/ca.pem") }}
  {{- end }}
  {{- include "cinder-csi.env" (dict "proxy" $root.Values.controller.proxy "extra" $env) | nindent 2 }}
  resources:
    requests:
      cpu: 10m
      memory: 50Mi
  securityContext:
    {{- include "cinder-csi.unprivileged" $root | nindent 4 }}
  volumeMounts:
  {{- if $ca.configMap }}
  - name: ca
    mountPath: /etc/cinder-csi/ca
    readOnly: true
  {{- end }}
  - name: plan
    mountPath: /etc/cinder-csi/drift-check
    readOnly: true
  - name: cloud
    mountPath: /etc/cinder-csi/cloud
    readOnly: true
  - name: api-access
    mountPath: /var/run/secrets/kubernetes.io/serviceaccount
    readOnly: true
volumes:
{{- if $ca.configMap }}
- name: ca
  {{- include "cinder-csi.caVolume" $root | nindent 2 }}
{{- end }}
- name: plan
  configMap:
    name: cinder-csi-drift-check
# A credential that can only read is enough: inspect sends no other request.
- name: cloud
  secret:
    secretName: cinder-csi-drift-check
    defaultMode: 288 # 0440
# The account may write one ConfigMap, cinder-csi-drift-check-status, and nothing else.
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
{{- end -}}
