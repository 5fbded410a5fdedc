{{- /* `make update` writes this file: the variables are those of v1alpha1.Settings, the sizes those of v1alpha1.ClusterSizes. */ -}}

{{- define "cinder-csi.settings.both" -}}
DRAIN_TIMEOUT: {{ .Values.driver.drainTimeout | quote }}
LOG_FORMAT: {{ .Values.driver.logFormat | quote }}
LOG_LEVEL: {{ .Values.driver.logLevel | int64 | quote }}
{{- end -}}

{{- define "cinder-csi.settings.controller" -}}
CAPACITY: {{ .Values.driver.capacity | quote }}
PROTECT_OTHER_CLUSTERS: {{ .Values.driver.protectOtherClusters | quote }}
READS_PER_SECOND: {{ .Values.driver.requestsPerSecond.reads | int64 | quote }}
SERVER_METADATA: {{ include "cinder-csi.pairs" .Values.driver.serverMetadata | quote }}
USER_AGENT: {{ .Values.driver.userAgent | quote }}
VOLUME_METADATA: {{ include "cinder-csi.pairs" .Values.driver.volumeMetadata | quote }}
WRITES_PER_SECOND: {{ .Values.driver.requestsPerSecond.writes | int64 | quote }}
{{- end -}}

{{- define "cinder-csi.settings.node" -}}
KUBELET_DIR: {{ .Values.driver.kubeletDir | quote }}
{{- end -}}

{{- /* What v1alpha1.ClusterSizes has for the size of the cluster. */ -}}
{{- define "cinder-csi.size" -}}
{{- if eq .Values.size "small" }}
memory: {"attacher":"70Mi","driver":"50Mi","provisioner":"75Mi","resizer":"65Mi"}
settings: {ATTACHER_API_BURST: "100", ATTACHER_API_QPS: "20", ATTACHER_RECONCILE_SYNC: 1m}
{{- else if eq .Values.size "medium" }}
memory: {"attacher":"90Mi","driver":"50Mi","provisioner":"95Mi","resizer":"80Mi"}
settings: {ATTACHER_API_BURST: "100", ATTACHER_API_QPS: "20", ATTACHER_RECONCILE_SYNC: 1m}
{{- else if eq .Values.size "large" }}
memory: {"attacher":"235Mi","driver":"64Mi","provisioner":"290Mi","resizer":"220Mi"}
settings: {ATTACHER_API_BURST: "200", ATTACHER_API_QPS: "100", ATTACHER_RECONCILE_SYNC: 5m}
{{- end }}
{{- end -}}
