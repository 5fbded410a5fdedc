{{- /* (root, plane, pool, kubeletDir): the driver of a node. */ -}}
{{- define "cinder-csi.nodeDriver" -}}
{{- $root := .root -}}
{{- $p := .plane -}}
{{- $pool := .pool -}}
{{- $n := $root.Values.node -}}
{{- $kubeletDir := .kubeletDir -}}
{{- $settingsName := "cinder-csi-node-settings" -}}
- name: driver
  {{- include "cinder-csi.container" (dict "images" $root.Values.images "image" $root.Values.images.node.driver "settings" $settingsName) | nindent 2 }}
  command:
  - /bin/cinder-csi-plugin
  {{- $args := include "cinder-csi.driverArgs.node" $root | fromYamlArray }}
  {{- if include "cinder-csi.poolConf" $pool }}
  {{- $args = append $args (print "--cloud-config=/etc/cinder-csi/config/" (include "cinder-csi.poolFile" $pool)) }}
  {{- end }}
  {{- include "cinder-csi.args" (dict "base" $args "extra" $n.extraArgs.driver) | nindent 2 }}
  {{- $env := $n.extraEnv.driver | default list }}
  {{- if $root.Values.nodeLifecycle.drainHook }}
  {{- /* The hook has no arguments: Kubernetes does not replace variables there. */}}
  {{- $env = prepend $env (dict "name" "NODE_NAME" "valueFrom" (dict "fieldRef" (dict "fieldPath" "spec.nodeName"))) }}
  lifecycle:
    preStop:
      exec:
        command:
        - /bin/cinder-csi-plugin
        - await-detached
  {{- end }}
  {{- with include "cinder-csi.env" (dict "proxy" $n.proxy "extra" $env) }}
  {{- . | nindent 2 }}
  {{- end }}
  ports:
  # With the host's network these are ports of the node: declared, so that a second stack is not scheduled onto it.
  - name: metrics
    containerPort: {{ include "cinder-csi.nodePort" $root | int | add 2 }}
    protocol: TCP
  - name: healthz
    containerPort: {{ include "cinder-csi.nodePort" $root }}
    protocol: TCP
  livenessProbe:
    httpGet:
      host: 127.0.0.1
      path: /healthz
      port: healthz
    {{- $timings := dict "initialDelaySeconds" 10 "periodSeconds" 30 "timeoutSeconds" 10 "failureThreshold" 5 }}
    {{- include "cinder-csi.timings" (dict "default" $timings "over" $n.livenessProbe.driver) | nindent 4 }}
  # Not ready before NodeGetInfo works: so a rollout of a driver that kubelet cannot register stops after its first step.
  readinessProbe:
    httpGet:
      host: 127.0.0.1
      path: /startupz
      port: metrics
    periodSeconds: 5
    timeoutSeconds: 5
  resources:
    {{- include "cinder-csi.resources" (dict "memory" "50Mi" "over" $n.resources.driver) | nindent 4 }}
  # Mounts into the host's tree and device nodes need this; no other container has it off OpenShift.
  securityContext:
    privileged: true
    readOnlyRootFilesystem: true
  volumeMounts:
  {{- if $root.Values.nodeLifecycle.drainHook }}
  {{- include "cinder-csi.apiAccess" $root | nindent 2 }}
  {{- end }}
  {{- if $p.selinux }}
  - name: etc-selinux
    mountPath: /etc/selinux
  - name: sys-fs
    mountPath: /sys/fs
  {{- end }}
  - name: plugin-dir
    mountPath: /csi
  - name: kubelet-dir
    mountPath: {{ $kubeletDir | quote }}
    mountPropagation: Bidirectional
  - name: dev
    mountPath: /dev
    mountPropagation: HostToContainer
  - name: config
    mountPath: /etc/cinder-csi/config
    readOnly: true
  - name: tmp
    mountPath: /tmp
  - name: run
    mountPath: /run
  {{- with $n.extraVolumeMounts.driver }}
  {{- toYaml . | nindent 2 }}
  {{- end }}
{{- end -}}

{{- /* (root): what answers the probe of the driver. */ -}}
{{- define "cinder-csi.nodeLivenessprobe" -}}
{{- $root := .root -}}
{{- $n := $root.Values.node -}}
{{- $settingsName := "cinder-csi-node-settings" -}}
- name: livenessprobe
  {{- include "cinder-csi.container" (dict "images" $root.Values.images "image" $root.Values.images.node.livenessprobe "settings" $settingsName) | nindent 2 }}
  {{- $args := list "--csi-address=/csi/csi.sock" "--http-endpoint=$(HEALTHZ_ADDRESS)" "--probe-timeout=10s" "--logging-format=$(LOG_FORMAT)" "--v=$(LOG_LEVEL)" }}
  {{- include "cinder-csi.args" (dict "base" $args "extra" $n.extraArgs.livenessprobe) | nindent 2 }}
  {{- with $n.extraEnv.livenessprobe }}
  env:
  {{- toYaml . | nindent 2 }}
  {{- end }}
  resources:
    {{- include "cinder-csi.resources" (dict "memory" "20Mi" "over" $n.resources.livenessprobe) | nindent 4 }}
  securityContext:
    {{- include "cinder-csi.besideKubelet" $root | nindent 4 }}
  volumeMounts:
  - name: plugin-dir
    mountPath: /csi
  {{- with $n.extraVolumeMounts.livenessprobe }}
  {{- toYaml . | nindent 2 }}
  {{- end }}
{{- end -}}
