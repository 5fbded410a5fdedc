{{- define "cinder-csi.sharedSettings" -}}
{{ include "cinder-csi.settings.both" . }}
DRIVER_NAME: {{ .Values.driver.name | quote }}
ENABLE_TOPOLOGY: {{ .Values.topology.enabled | quote }}
{{- end -}}

{{- /* The first of three ports of the host that the node pods take: health, registrar, metrics. The installer of OpenShift opens 9000 to 9999
between the nodes. */ -}}
{{- define "cinder-csi.nodePort" -}}
{{- if kindIs "string" .Values.monitoring.nodePorts -}}
{{ eq .Values.target "vanilla" | ternary 29601 9601 }}
{{- else -}}
{{ .Values.monitoring.nodePorts | int }}
{{- end -}}
{{- end -}}

{{- define "cinder-csi.nodeSettings" -}}
{{ include "cinder-csi.sharedSettings" . }}
{{ include "cinder-csi.settings.node" . }}
{{- $port := include "cinder-csi.nodePort" . | int }}
HEALTHZ_ADDRESS: {{ printf "127.0.0.1:%d" $port | quote }}
METRICS_ADDRESS: {{ printf "%s:%d" (eq .Values.monitoring.kind "none" | ternary "127.0.0.1" "") (add $port 2) | quote }}
REGISTRAR_ADDRESS: {{ printf "127.0.0.1:%d" (add $port 1) | quote }}
{{- with .Values.node.settings }}
{{ toYaml . }}
{{- end }}
{{- end -}}

{{- define "cinder-csi.controllerSettings" -}}
{{- $p := include "cinder-csi.plane" . | fromYaml -}}
{{ include "cinder-csi.sharedSettings" . }}
{{ include "cinder-csi.settings.controller" . }}
{{ (include "cinder-csi.size" . | fromYaml).settings | toYaml }}
CAPACITY_OWNER_LEVEL: {{ $p.hosted | ternary "-1" "2" | quote }}
CLUSTER_ID: {{ .Values.clusterID | quote }}
LEASE_DURATION: {{ .Values.leases.leaseDuration | quote }}
LEASE_NAMESPACE: {{ $p.leaseNS | quote }}
LEASE_RENEW_DEADLINE: {{ .Values.leases.renewDeadline | quote }}
LEASE_RETRY_PERIOD: {{ .Values.leases.retryPeriod | quote }}
NAMESPACE: {{ $p.leaseNS | quote }}
PVC_ANNOTATIONS: {{ and (not $p.hosted) .Values.driver.pvcAnnotations | quote }}
REMOVE_STARTUP_TAINT: {{ .Values.nodeLifecycle.startupTaint | quote }}
{{- if .Values.monitoring.tls.enabled }}
TLS_CIPHER_SUITES: {{ .Values.monitoring.tls.cipherSuites | quote }}
TLS_MIN_VERSION: {{ .Values.monitoring.tls.minVersion | quote }}
{{- end }}
SIDECAR_KUBECONFIG: {{ $p.hosted | ternary "/etc/hosted-kubernetes/kubeconfig" "" | quote }}
{{- /* Never without snapshots: the provisioner has no right to list them then. */}}
SNAPSHOT_SWEEP_INTERVAL: {{ .Values.snapshots.enabled | ternary "5m" "0s" | quote }}
{{- with .Values.controller.settings }}
{{ toYaml . }}
{{- end }}
{{- end -}}
