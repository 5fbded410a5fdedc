{{- /* Which parts the plane has, and where its objects of the controller live: in the guest beside the node. */ -}}
{{- define "plane" -}}
{{- $v := .Values -}}
{{- if and (eq $v.target "hypershift") (eq $v.plane "cluster") }}{{ fail "target hypershift has the planes management and guest" }}{{ end -}}
{{- if and (ne $v.target "hypershift") (ne $v.plane "cluster") }}{{ fail (printf "target %s has one plane, cluster" $v.target) }}{{ end -}}
controller: {{ ne $v.plane "guest" }}
node: {{ ne $v.plane "management" }}
cluster: {{ ne $v.plane "management" }}
hosted: {{ eq $v.target "hypershift" }}
openshift: {{ ne $v.target "vanilla" }}
controllerNS: {{ eq $v.plane "guest" | ternary $v.namespaces.node $v.namespaces.controller | quote }}
leaseNS: {{ eq $v.target "hypershift" | ternary $v.namespaces.node $v.namespaces.controller | quote }}
{{- end -}}

{{- define "labels" -}}
app.kubernetes.io/managed-by: Helm
app.kubernetes.io/name: cinder-csi
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version }}
{{- end -}}

{{- /* What keeps an object when what deployed it is gone. */ -}}
{{- define "guards" -}}
argocd.argoproj.io/sync-options: Prune=false
helm.sh/resource-policy: keep
{{- end -}}

{{- define "nodeSettings" -}}
DRIVER_NAME: {{ .Values.driver.name | quote }}
ENABLE_TOPOLOGY: {{ .Values.topology.enabled | quote }}
LOG_LEVEL: {{ .Values.driver.logLevel | quote }}
{{- end -}}

{{- define "controllerSettings" -}}
{{- $p := include "plane" . | fromYaml -}}
{{ include "nodeSettings" . }}
CLUSTER_ID: {{ .Values.clusterID | quote }}
LEASE_DURATION: {{ .Values.leases.leaseDuration | quote }}
LEASE_NAMESPACE: {{ $p.leaseNS | quote }}
LEASE_RENEW_DEADLINE: {{ .Values.leases.renewDeadline | quote }}
LEASE_RETRY_PERIOD: {{ .Values.leases.retryPeriod | quote }}
PVC_ANNOTATIONS: {{ and (not $p.hosted) .Values.driver.pvcAnnotations | quote }}
SIDECAR_KUBECONFIG: {{ $p.hosted | ternary "/etc/hosted-kubernetes/kubeconfig" "" | quote }}
{{- end -}}

{{- /* (image, settings ConfigMap): what every container has. */ -}}
{{- define "container" -}}
image: {{ printf "%s/%s%s" .image.registry .image.repository (.image.digest | empty | ternary (print ":" .image.tag) (print "@" .image.digest)) | quote }}
imagePullPolicy: IfNotPresent
terminationMessagePolicy: FallbackToLogsOnError
envFrom:
- configMapRef:
    name: {{ .settings }}
{{- end -}}

{{- define "unprivileged" -}}
allowPrivilegeEscalation: false
capabilities:
  drop:
  - ALL
readOnlyRootFilesystem: true
{{- end -}}

{{- /* The pod's token, for containers that talk to the API server of the cluster they run in. */ -}}
{{- define "apiAccess" -}}
- name: api-access
  mountPath: /var/run/secrets/kubernetes.io/serviceaccount
  readOnly: true
{{- end -}}

{{- /* (memory, over): the container's requests under what the values say. */ -}}
{{- define "resources" -}}
{{- $r := dict "requests" (dict "cpu" "10m" "memory" .memory) -}}
{{- toYaml (mergeOverwrite $r (.over | default dict)) -}}
{{- end -}}

{{- define "proxyEnv" -}}
{{- if or .http .https .noProxy -}}
env:
{{- with .http }}
- name: HTTP_PROXY
  value: {{ . | quote }}
{{- end }}
{{- with .https }}
- name: HTTPS_PROXY
  value: {{ . | quote }}
{{- end }}
{{- with .noProxy }}
- name: NO_PROXY
  value: {{ . | quote }}
{{- end }}
{{- end -}}
{{- end -}}

{{- define "sidecarArgs" -}}
- --csi-address=/csi/csi.sock
- --kubeconfig=$(SIDECAR_KUBECONFIG)
- --http-endpoint=:{{ . }}
- --leader-election
- --leader-election-namespace=$(LEASE_NAMESPACE)
- --leader-election-lease-duration=$(LEASE_DURATION)
- --leader-election-renew-deadline=$(LEASE_RENEW_DEADLINE)
- --leader-election-retry-period=$(LEASE_RETRY_PERIOD)
{{- end -}}

{{- /* What a role's values say of its pods. */ -}}
{{- define "placement" -}}
priorityClassName: {{ .priorityClassName | quote }}
{{- with .nodeSelector }}
nodeSelector:
  {{- toYaml . | nindent 2 }}
{{- end }}
tolerations: {{ toJson .tolerations }}
{{- if .imagePullSecrets }}
imagePullSecrets:
{{- range .imagePullSecrets }}
- name: {{ . | quote }}
{{- end }}
{{- end }}
{{- end -}}
