{{- /* The registrar of the nodes. With the drain hook Kubernetes starts it before the other containers, and ends it after them: without it kubelet
forgets the driver, and unmounts nothing. */ -}}
{{- define "cinder-csi.registrar" -}}
name: registrar
{{- include "cinder-csi.container" (dict "images" $.Values.images "image" $.Values.images.node.registrar "settings" "cinder-csi-node-settings") | nindent 0 }}
{{- $n := $.Values.node }}
{{- $args := list
  "--csi-address=/csi/csi.sock"
  "--kubelet-registration-path=$(KUBELET_DIR)/plugins/$(DRIVER_NAME)/csi.sock"
  "--http-endpoint=$(REGISTRAR_ADDRESS)"
  "--logging-format=$(LOG_FORMAT)"
  "--v=$(LOG_LEVEL)" }}
{{- include "cinder-csi.args" (dict "base" $args "extra" $n.extraArgs.registrar) | nindent 0 }}
{{- with $n.extraEnv.registrar }}
env:
{{- toYaml . | nindent 0 }}
{{- end }}
ports:
- name: registrar
  containerPort: {{ include "cinder-csi.nodePort" $ | int | add 1 }}
  protocol: TCP
livenessProbe:
  httpGet:
    host: 127.0.0.1
    path: /healthz
    port: registrar
  {{- $timings := dict "initialDelaySeconds" 10 "periodSeconds" 30 "timeoutSeconds" 10 "failureThreshold" 5 }}
  {{- include "cinder-csi.timings" (dict "default" $timings "over" $n.livenessProbe.registrar) | nindent 2 }}
resources:
  {{- include "cinder-csi.resources" (dict "memory" "20Mi" "over" $n.resources.registrar) | nindent 2 }}
securityContext:
  {{- $security := include "cinder-csi.besideKubelet" $ | fromYaml }}
  {{- if (ne $.Values.target "vanilla") }}
  {{- /* SELinux keeps an ordinary container from the kubelet's directories, also where no label is passed to mounts. */}}
  {{- $security = merge (dict "allowPrivilegeEscalation" true "privileged" true) $security }}
  {{- end }}
  {{- toYaml $security | nindent 2 }}
volumeMounts:
- name: plugin-dir
  mountPath: /csi
- name: registration-dir
  mountPath: /registration
{{- with $n.extraVolumeMounts.registrar }}
{{- toYaml . | nindent 0 }}
{{- end }}
{{- if $.Values.nodeLifecycle.drainHook }}
restartPolicy: Always
{{- end }}
{{- end -}}
