{{- /* It stays and runs beside the others, which start when it has written a kubeconfig. */ -}}
{{- define "cinder-csi.guestToken" -}}
name: guest-token
{{ include "cinder-csi.container" (dict "images" .Values.images "image" .Values.images.controller.driver "settings" "cinder-csi-controller-settings") }}
restartPolicy: Always
command:
- /bin/cinder-csi-plugin
- guest-token
args:
- --kubeconfig=/etc/admin-kubernetes/kubeconfig
- --namespace=$(LEASE_NAMESPACE)
- --service-account=cinder-csi-controller
- --output-dir=/etc/hosted-kubernetes
- --http-endpoint=:8085
ports:
- name: guest-token
  containerPort: 8085
  protocol: TCP
startupProbe:
  httpGet:
    path: /healthz
    port: guest-token
  periodSeconds: 2
  timeoutSeconds: 5
  failureThreshold: 150
resources:
  requests:
    cpu: 10m
    memory: 20Mi
securityContext:
  {{- include "cinder-csi.unprivileged" . | nindent 2 }}
volumeMounts:
- name: hosted-kubeconfig
  mountPath: /etc/hosted-kubernetes
- name: admin-kubeconfig
  mountPath: /etc/admin-kubernetes
  readOnly: true
{{- end -}}
