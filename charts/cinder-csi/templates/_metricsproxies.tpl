{{- /* (root): a kube-rbac-proxy in front of the metrics of each container of the controller. */ -}}
{{- define "cinder-csi.metricsProxies" -}}
{{- $root := .root -}}
{{- $c := $root.Values.controller -}}
{{- $settingsName := "cinder-csi-controller-settings" -}}
{{- $proxies := list (list "attacher" 8082 8445) (list "driver" 8080 8443) (list "provisioner" 8081 8444) (list "resizer" 8083 8446) }}
{{- range $root.Values.snapshots.enabled | ternary (append $proxies (list "snapshotter" 8084 8447)) $proxies }}
{{- $name := print "kube-rbac-proxy-" (first .) }}
- name: {{ $name }}
  {{- include "cinder-csi.container" (dict "images" $root.Values.images "image" $root.Values.images.controller.rbacproxy "settings" $settingsName) | nindent 2 }}
  {{- $args := list
    (print "--secure-listen-address=:" (last .))
    (printf "--upstream=http://127.0.0.1:%v/" (index . 1))
    "--allow-paths=/metrics"
    "--tls-cert-file=/etc/tls/private/tls.crt"
    "--tls-private-key-file=/etc/tls/private/tls.key"
    "--tls-min-version=$(TLS_MIN_VERSION)"
    "--tls-cipher-suites=$(TLS_CIPHER_SUITES)"
    "--v=$(LOG_LEVEL)" }}
  {{- include "cinder-csi.args" (dict "base" $args "extra" $c.extraArgs.rbacproxy) | nindent 2 }}
  {{- with $c.extraEnv.rbacproxy }}
  env:
  {{- toYaml . | nindent 2 }}
  {{- end }}
  ports:
  - name: {{ first . }}-m
    containerPort: {{ last . }}
    protocol: TCP
  livenessProbe:
    tcpSocket:
      port: {{ first . }}-m
    {{- $timings := dict "initialDelaySeconds" 10 "periodSeconds" 30 "timeoutSeconds" 10 "failureThreshold" 5 }}
    {{- include "cinder-csi.timings" (dict "default" $timings "over" $c.livenessProbe.rbacproxy) | nindent 4 }}
  resources:
    {{- include "cinder-csi.resources" (dict "memory" "20Mi" "over" $c.resources.rbacproxy) | nindent 4 }}
  securityContext:
    {{- include "cinder-csi.unprivileged" $root | nindent 4 }}
  volumeMounts:
  - name: metrics-tls
    mountPath: /etc/tls/private
    readOnly: true
  {{- include "cinder-csi.apiAccess" $root | nindent 2 }}
  {{- with $c.extraVolumeMounts.rbacproxy }}
  {{- toYaml . | nindent 2 }}
  {{- end }}
{{- end }}
{{- end -}}
