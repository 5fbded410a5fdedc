{{- /* (root, plane, settings, size, ca): the driver of the controller. */ -}}
{{- define "cinder-csi.controllerDriver" -}}
{{- $root := .root -}}
{{- $c := $root.Values.controller -}}
{{- $size := .size -}}
{{- $settingsName := "cinder-csi-controller-settings" -}}
{{- $settings := .settings -}}
{{- $ca := .ca -}}
- name: driver
  {{- include "cinder-csi.container" (dict "images" $root.Values.images "image" $root.Values.images.controller.driver "settings" $settingsName) | nindent 2 }}
  command:
  - /bin/cinder-csi-plugin
  {{- $args := include "cinder-csi.driverArgs.controller" $root | fromYamlArray }}
  {{- include "cinder-csi.args" (dict "base" $args "extra" $c.extraArgs.driver) | nindent 2 }}
  {{- with include "cinder-csi.env" (dict "proxy" $c.proxy "extra" $c.extraEnv.driver) }}
  {{- . | nindent 2 }}
  {{- end }}
  ports:
  - name: driver
    containerPort: 8080
    protocol: TCP
  - name: healthz
    containerPort: 9808
    protocol: TCP
  # Answered by the livenessprobe container, which asks the driver over its socket. Without a login the driver is not ready for the first 90 s. The
  # probe takes longer to fail, and later OpenStack is no part of the answer.
  livenessProbe:
    httpGet:
      path: /healthz
      port: healthz
    {{- $timings := dict "initialDelaySeconds" 10 "periodSeconds" 30 "timeoutSeconds" 10 "failureThreshold" 5 }}
    {{- include "cinder-csi.timings" (dict "default" $timings "over" $c.livenessProbe.driver) | nindent 4 }}
  # Ready once the driver has logged in to the cloud. So a rollout with wrong credentials stops, and the other pod continues to work. A later
  # outage of the cloud does not change it.
  readinessProbe:
    httpGet:
      path: /startupz
      port: driver
    periodSeconds: 10
    timeoutSeconds: 10
    failureThreshold: 3
  resources:
    {{- include "cinder-csi.resources" (dict "memory" $size.memory.driver "over" $c.resources.driver) | nindent 4 }}
  securityContext:
    {{- include "cinder-csi.unprivileged" $root | nindent 4 }}
  volumeMounts:
  {{- /* With it the driver has every right that the sidecars have. */}}
  {{- if or (eq $settings.PVC_ANNOTATIONS "true") $root.Values.nodeLifecycle.startupTaint }}
  {{- include "cinder-csi.apiAccess" $root | nindent 2 }}
  {{- end }}
  {{- if $ca.configMap }}
  - name: ca
    mountPath: /etc/cinder-csi/ca
    readOnly: true
  {{- end }}
  - name: socket
    mountPath: /csi
  - name: config
    mountPath: /etc/cinder-csi/config
    readOnly: true
  # A directory: with a subPath a rotated credential would never reach the driver.
  - name: cloud
    mountPath: /etc/cinder-csi/cloud
    readOnly: true
  {{- with $c.extraVolumeMounts.driver }}
  {{- toYaml . | nindent 2 }}
  {{- end }}
{{- end -}}
