{{- /* (root, plane, size): the sidecars that watch the API server, and the livenessprobe. */ -}}
{{- define "cinder-csi.controllerSidecars" -}}
{{- $root := .root -}}
{{- $p := .plane -}}
{{- $c := $root.Values.controller -}}
{{- $size := .size -}}
{{- $settingsName := "cinder-csi-controller-settings" -}}
{{- $sidecars := list
  (dict "name" "provisioner" "port" 8081 "args" (list "--timeout=3m" "--retry-interval-max=1m" "--kube-api-qps=100" "--kube-api-burst=200" "--default-fstype=ext4" "--extra-create-metadata" "--strict-topology" "--enable-capacity=$(CAPACITY)" "--kube-api-capacity-qps=20" "--kube-api-capacity-burst=100" "--capacity-ownerref-level=$(CAPACITY_OWNER_LEVEL)" "--snapshot-orphan-sweep-interval=$(SNAPSHOT_SWEEP_INTERVAL)"))
  (dict "name" "attacher" "port" 8082 "args" (list "--timeout=3m" "--kube-api-qps=$(ATTACHER_API_QPS)" "--kube-api-burst=$(ATTACHER_API_BURST)" "--reconcile-sync=$(ATTACHER_RECONCILE_SYNC)" "--worker-threads=100" "--default-fstype=ext4"))
  (dict "name" "resizer" "port" 8083 "args" (list "--timeout=3m" "--kube-api-qps=20" "--kube-api-burst=100" "--workers=100" "--handle-volume-inuse-error=false")) }}
{{- if $root.Values.snapshots.enabled }}
{{- $sidecars = append $sidecars (dict "name" "snapshotter" "port" 8084 "args" (list "--timeout=3m" "--kube-api-qps=20" "--kube-api-burst=100" "--worker-threads=100" "--retry-interval-max=1m" "--extra-create-metadata" "--feature-gates=CSIVolumeGroupSnapshot=false")) }}
{{- end }}
{{- range $s := $sidecars }}
- name: {{ $s.name }}
  {{- include "cinder-csi.container" (dict "images" $root.Values.images "image" (get $root.Values.images.controller $s.name) "settings" $settingsName) | nindent 2 }}
  {{- $args := list
    "--csi-address=/csi/csi.sock"
    "--kubeconfig=$(SIDECAR_KUBECONFIG)"
    (print "--http-endpoint=:" $s.port)
    "--leader-election"
    "--leader-election-namespace=$(LEASE_NAMESPACE)"
    "--leader-election-lease-duration=$(LEASE_DURATION)"
    "--leader-election-renew-deadline=$(LEASE_RENEW_DEADLINE)"
    "--leader-election-retry-period=$(LEASE_RETRY_PERIOD)" }}
  {{- $args = append (concat $args $s.args (list "--logging-format=$(LOG_FORMAT)")) "--v=$(LOG_LEVEL)" }}
  {{- include "cinder-csi.args" (dict "base" $args "extra" (get $c.extraArgs $s.name)) | nindent 2 }}
  {{- $env := get $c.extraEnv $s.name | default list }}
  {{- if and (eq $s.name "provisioner") $root.Values.driver.capacity (not $p.hosted) }}
  {{- /* The provisioner finds the owner of the published objects from its own pod. */}}
  {{- $env = prepend $env (dict "name" "POD_NAME" "valueFrom" (dict "fieldRef" (dict "fieldPath" "metadata.name"))) }}
  {{- end }}
  {{- with $env }}
  env:
  {{- toYaml . | nindent 2 }}
  {{- end }}
  ports:
  - name: {{ $s.name }}
    containerPort: {{ $s.port }}
    protocol: TCP
  # The sidecar answers only after the first login of the driver, or after 90 s. Until then the liveness probe would restart it.
  startupProbe:
    httpGet:
      path: /healthz/leader-election
      port: {{ $s.name }}
    periodSeconds: 5
    timeoutSeconds: 10
    failureThreshold: 30
  livenessProbe:
    httpGet:
      path: /healthz/leader-election
      port: {{ $s.name }}
    {{- $timings := dict "initialDelaySeconds" 10 "periodSeconds" 20 "timeoutSeconds" 10 "failureThreshold" 1 }}
    {{- include "cinder-csi.timings" (dict "default" $timings "over" (get $c.livenessProbe $s.name)) | nindent 4 }}
  resources:
    {{- include "cinder-csi.resources" (dict "memory" (get $size.memory $s.name | default "50Mi") "over" (get $c.resources $s.name)) | nindent 4 }}
  securityContext:
    {{- include "cinder-csi.unprivileged" $root | nindent 4 }}
  volumeMounts:
  {{- if $p.hosted }}
  - name: hosted-kubeconfig
    mountPath: /etc/hosted-kubernetes
    readOnly: true
  {{- end }}
  - name: socket
    mountPath: /csi
  {{- if not $p.hosted }}
  {{- include "cinder-csi.apiAccess" $root | nindent 2 }}
  {{- end }}
  {{- with get $c.extraVolumeMounts $s.name }}
  {{- toYaml . | nindent 2 }}
  {{- end }}
{{- end }}
- name: livenessprobe
  {{- include "cinder-csi.container" (dict "images" $root.Values.images "image" $root.Values.images.controller.livenessprobe "settings" $settingsName) | nindent 2 }}
  {{- $args := list "--csi-address=/csi/csi.sock" "--http-endpoint=:9808" "--probe-timeout=10s" "--logging-format=$(LOG_FORMAT)" "--v=$(LOG_LEVEL)" }}
  {{- include "cinder-csi.args" (dict "base" $args "extra" $c.extraArgs.livenessprobe) | nindent 2 }}
  {{- with $c.extraEnv.livenessprobe }}
  env:
  {{- toYaml . | nindent 2 }}
  {{- end }}
  resources:
    {{- include "cinder-csi.resources" (dict "memory" "50Mi" "over" $c.resources.livenessprobe) | nindent 4 }}
  securityContext:
    {{- include "cinder-csi.unprivileged" $root | nindent 4 }}
  volumeMounts:
  - name: socket
    mountPath: /csi
  {{- with $c.extraVolumeMounts.livenessprobe }}
  {{- toYaml . | nindent 2 }}
  {{- end }}
{{- end -}}
