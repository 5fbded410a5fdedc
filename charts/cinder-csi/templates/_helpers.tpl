{{- /* Which parts the plane has, and where its objects of the controller live: in the guest beside the node. */ -}}
{{- define "cinder-csi.plane" -}}
{{- $v := .Values -}}
{{- if and (eq $v.target "hypershift") (eq $v.plane "cluster") }}{{ fail "target hypershift has the planes management and guest" }}{{ end -}}
{{- if and (ne $v.target "hypershift") (ne $v.plane "cluster") }}{{ fail (printf "target %s has one plane, cluster" $v.target) }}{{ end -}}
{{- include "cinder-csi.foreignGates" . -}}
{{- include "cinder-csi.valueGates" . -}}
{{- include "cinder-csi.kubernetesGates" . -}}
{{- include "cinder-csi.poolGates" . -}}
controller: {{ ne $v.plane "guest" }}
node: {{ ne $v.plane "management" }}
cluster: {{ ne $v.plane "management" }}
hosted: {{ eq $v.target "hypershift" }}
guestToken: {{ and (eq $v.target "hypershift") (eq $v.hypershift.guestAccess "serviceAccountToken") }}
openshift: {{ ne $v.target "vanilla" }}
selinux: {{ eq $v.node.selinux "auto" | ternary (ne $v.target "vanilla") (eq $v.node.selinux "enabled") }}
controllerNS: {{ eq $v.plane "guest" | ternary $v.namespaces.node $v.namespaces.controller | quote }}
leaseNS: {{ eq $v.target "hypershift" | ternary $v.namespaces.node $v.namespaces.controller | quote }}
{{- end -}}

{{- /* Values that contradict each other are refused. A helper whose name ends with Gates makes nothing: the generator relies on it. */ -}}
{{- define "cinder-csi.valueGates" -}}
{{- $v := .Values -}}
{{- /* The schema refuses both first. These are for installations that skip it. */ -}}
{{- if ne $v.chartVersion .Chart.Version }}{{ fail (printf "the values are for chart %s %s, and this is version %s: generate them again" .Chart.Name $v.chartVersion .Chart.Version) }}{{ end -}}
{{- if and $v.networkPolicy.enabled (not $v.networkPolicy.ports) }}{{ fail "networkPolicy.enabled needs networkPolicy.ports: an empty list would allow all traffic" }}{{ end -}}
{{- if and $v.networkPolicy.enabled (ne $v.monitoring.kind "none") (eq $v.target "vanilla") (not $v.networkPolicy.metricsNamespaces) }}{{ fail "networkPolicy.metricsNamespaces is empty, so the NetworkPolicy would keep Prometheus from the metrics: set it to the namespace of your Prometheus, such as [monitoring]" }}{{ end -}}
{{- if and $v.monitoring.tls.enabled (or (ne $v.target "standalone") (ne $v.monitoring.kind "ServiceMonitor")) }}{{ fail "monitoring.tls.enabled needs target standalone and monitoring.kind ServiceMonitor: the certificate is that of a Service, and OpenShift makes it" }}{{ end -}}
{{- if and $v.credentials.request (ne $v.target "standalone") }}{{ fail "credentials.request needs target standalone" }}{{ end -}}
{{- if and $v.monitoring.platform (eq $v.target "vanilla") }}{{ fail "monitoring.platform needs OpenShift: target standalone or hypershift" }}{{ end -}}
{{- if ne $v.target "vanilla" -}}
{{- /* OpenShift leaves these namespaces out of its security context constraints; generator/plan has the same list, and a test compares. */ -}}
{{- range $role, $namespace := pick $v.namespaces "controller" "node" -}}
{{- if has $namespace (list "default" "kube-public" "kube-system" "openshift" "openshift-infra" "openshift-node") }}{{ fail (printf "namespaces.%s: OpenShift applies no security context constraint in %s, so nothing chooses the user and group of the pods: name another namespace" $role $namespace) }}{{ end -}}
{{- end -}}
{{- end -}}
{{- if and (eq $v.target "standalone") (not (kindIs "string" $v.controller.runAsUser)) $v.controller.runAsUser }}{{ fail "controller.runAsUser: OpenShift chooses the user from the range of the namespace and refuses pods with another one: set it to auto" }}{{ end -}}
{{- if and $v.nodeLifecycle.startupTaint (eq $v.target "hypershift") }}{{ fail "nodeLifecycle.startupTaint: on hypershift the controller has no token for the cluster of the nodes" }}{{ end -}}
{{- if has $v.driver.name (list "cinder-csi" "cinder-csi-backup") }}{{ fail (printf "driver.name %s would give objects of the whole cluster the names of those of cinder.csi.openstack.org: choose another name, such as %s.example.com" $v.driver.name $v.driver.name) }}{{ end -}}
{{- /* The first release of each sidecar that has all flags of the chart; generator/plan has the same list, and a test compares. */ -}}
{{- range $role, $images := pick $v.images "controller" "node" -}}
{{- range list (list "provisioner" "csi-provisioner" "6.3.0" "--snapshot-orphan-sweep-interval") (list "attacher" "csi-attacher" "4.6.0" "--logging-format") (list "resizer" "csi-resizer" "1.10.0" "--logging-format") (list "snapshotter" "csi-snapshotter" "8.3.0" "--logging-format") (list "registrar" "csi-node-driver-registrar" "2.11.0" "--logging-format") (list "livenessprobe" "livenessprobe" "2.12.0" "--logging-format") -}}
{{- $image := dig (index . 0) dict $images -}}
{{- if and $image (not $image.digest) (hasSuffix (print "/" (index . 1)) (print "/" $image.repository)) (regexMatch "^v[0-9]+\\.[0-9]+\\.[0-9]+$" $image.tag) -}}
{{- if semverCompare (print "<" (index . 2)) $image.tag }}{{ fail (printf "images.%s.%s.tag: %s %s has no flag %s, which the chart sets, and ends at once: name v%s or later" $role (index . 0) (index . 1) $image.tag (index . 3) (index . 2)) }}{{ end -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{- /* What a Kubernetes lacks is refused, as the generator does: an older API server refuses the field, or drops it in silence. */ -}}
{{- define "cinder-csi.kubernetesGates" -}}
{{- $v := .Values -}}
{{- with $v.kubernetesVersion -}}
{{- $minor := regexReplaceAll "^v?1\\.([0-9]+).*$" . "${1}" | int -}}
{{- range list
  (list 27 true "this chart")
  (list 29 $v.nodeLifecycle.drainHook "nodeLifecycle.drainHook")
  (list 29 (and (eq $v.target "hypershift") (eq $v.hypershift.guestAccess "serviceAccountToken")) "hypershift.guestAccess: serviceAccountToken")
  (list 34 (not (empty $v.attributesClasses)) "attributesClasses")
  (list 35 (gt (int $v.driver.limitRefreshSeconds) 0) "driver.limitRefreshSeconds") -}}
{{- if and (index . 1) (lt $minor (first .)) }}{{ fail (printf "%s needs Kubernetes 1.%d, and kubernetesVersion is %s" (last .) (first .) $v.kubernetesVersion) }}{{ end -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{- /* Pools whose nodes could run two of the driver are refused, as the generator does. */ -}}
{{- define "cinder-csi.poolGates" -}}
{{- $labels := list -}}
{{- $names := list -}}
{{- range $pool := .Values.nodePools -}}
{{- if has $pool.name $names }}{{ fail (printf "nodePools: two pools have the name %s; their DaemonSets would be one" $pool.name) }}{{ end -}}
{{- $names = append $names $pool.name -}}
{{- range $key, $value := $pool.nodeSelector -}}
{{- range $other := $labels -}}
{{- if ne $key $other.key }}{{ fail (printf "nodePools: %s and %s are labels of pools, and a node with both would run two of the driver. Give all pools one label with different values" $other.key $key) }}{{ end -}}
{{- if eq $value $other.value }}{{ fail (printf "nodePools: two pools have the label %s=%s; its nodes would run two of the driver" $key $value) }}{{ end -}}
{{- end -}}
{{- $labels = append $labels (dict "key" $key "value" $value) -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{- define "cinder-csi.labels" -}}
{{- with .Values.commonLabels }}
{{- toYaml . }}
{{ end -}}
app.kubernetes.io/managed-by: Helm
app.kubernetes.io/name: cinder-csi
app.kubernetes.io/part-of: cinder-csi
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version }}
{{- end -}}

{{- /* (root, role): the labels of an object of the Prometheus operator. */ -}}
{{- define "cinder-csi.monitoringLabels" -}}
{{- $labels := include "cinder-csi.labels" .root | fromYaml -}}
{{- toYaml (mergeOverwrite $labels .root.Values.monitoring.labels (dict "app.kubernetes.io/component" .role)) -}}
{{- end -}}

{{- /* Begins the names of objects that are in no namespace: with a driver name that is no default, a second bundle in the cluster has others. */ -}}
{{- define "cinder-csi.clusterPrefix" -}}
{{ has .Values.driver.name (list "cinder.csi.openstack.org" "cinder-csi.io") | ternary "cinder-csi" .Values.driver.name }}
{{- end -}}

{{- define "cinder-csi.snapshotClass" -}}
{{ .Values.snapshots.className | default (include "cinder-csi.clusterPrefix" .) }}
{{- end -}}

{{- /* What keeps an object when what deployed it is gone. */ -}}
{{- define "cinder-csi.guards" -}}
argocd.argoproj.io/sync-options: Prune=false
helm.sh/resource-policy: keep
kustomize.toolkit.fluxcd.io/prune: disabled
{{- end -}}

{{- /* KEY=VALUE,KEY=VALUE, sorted by key. */ -}}
{{- define "cinder-csi.pairs" -}}
{{- $pairs := list -}}
{{- range $key, $value := . -}}
{{- $pairs = append $pairs (printf "%s=%s" $key $value) -}}
{{- end -}}
{{- join "," $pairs -}}
{{- end -}}

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

{{- /* (images, image): the image with the mirror in place of its own registry. */ -}}
{{- define "cinder-csi.image" -}}
{{- $registry := .images.registry | default .image.registry -}}
{{- if not $registry }}{{ fail (printf "no registry has the image %s by default: build or mirror it (docs/how-to/build-the-image.md), then set images.registry, or the registry of images.controller.driver, images.node.driver and, with driftCheck, images.driftcheck.generator" .image.repository) }}{{ end -}}
{{- $version := .image.digest | empty | ternary (print ":" .image.tag) (print "@" .image.digest) -}}
image: {{ printf "%s/%s%s" $registry .image.repository $version | quote }}
imagePullPolicy: {{ .image.pullPolicy | default .images.pullPolicy }}
{{- end -}}

{{- /* (images, image, settings ConfigMap): what every container has. */ -}}
{{- define "cinder-csi.container" -}}
{{ include "cinder-csi.image" . }}
terminationMessagePolicy: FallbackToLogsOnError
envFrom:
- configMapRef:
    name: {{ .settings }}
{{- end -}}

{{- /* The ConfigMap with the CA certificates, and the key that holds them; no name without any. */ -}}
{{- define "cinder-csi.ca" -}}
{{- $v := .Values -}}
{{- $given := 0 -}}
{{- range list $v.caBundle $v.caConfigMap.name $v.credentials.caKey $v.trustedCA }}{{ if . }}{{ $given = add1 $given }}{{ end }}{{ end -}}
{{- if gt $given 1 }}{{ fail "caBundle, caConfigMap, credentials.caKey and trustedCA exclude each other: the driver trusts the certificates of one file" }}{{ end -}}
{{- if $v.trustedCA }}
configMap: cinder-csi-trusted-ca
key: ca-bundle.crt
{{- else if $v.caConfigMap.name }}
configMap: {{ $v.caConfigMap.name | quote }}
key: {{ $v.caConfigMap.key | quote }}
{{- else if $v.caBundle }}
configMap: cinder-csi-ca
key: ca.pem
{{- else }}
configMap: ""
{{- end }}
{{- end -}}

{{- define "cinder-csi.caVolume" -}}
{{- $ca := include "cinder-csi.ca" . | fromYaml -}}
configMap:
  name: {{ $ca.configMap | quote }}
  items:
  - key: {{ $ca.key | quote }}
    path: ca.pem
{{- end -}}

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

{{- /* The user of pods that do not run as root; empty where the platform selects it. A security context constraint of OpenShift admits only users of
the range of the namespace. */ -}}
{{- define "cinder-csi.user" -}}
{{- $user := .Values.controller.runAsUser -}}
{{- if kindIs "string" $user -}}
{{- $user = eq .Values.target "vanilla" | ternary 65532 0 -}}
{{- end -}}
{{- with $user -}}
runAsUser: {{ . | int64 }}
runAsGroup: {{ . | int64 }}
fsGroup: {{ . | int64 }}
{{- end -}}
{{- end -}}

{{- define "cinder-csi.unprivileged" -}}
allowPrivilegeEscalation: false
capabilities:
  drop:
  - ALL
readOnlyRootFilesystem: true
{{- end -}}

{{- /* For the sidecars of the node: an ordinary container may not use the directories of the kubelet and the socket there where SELinux enforces. */ -}}
{{- define "cinder-csi.besideKubelet" -}}
{{ include "cinder-csi.unprivileged" . }}
{{- if (include "cinder-csi.plane" . | fromYaml).selinux }}
seLinuxOptions:
  type: spc_t
{{- end }}
{{- end -}}

{{- /* The pod's token, for containers that talk to the API server of the cluster they run in. */ -}}
{{- define "cinder-csi.apiAccess" -}}
- name: api-access
  mountPath: /var/run/secrets/kubernetes.io/serviceaccount
  readOnly: true
{{- end -}}

{{- /* Servers of DNS that are no pods. */ -}}
{{- define "cinder-csi.dnsNetworks" -}}
{{- range .Values.networkPolicy.dnsCIDRs }}
- ipBlock:
    cidr: {{ . | quote }}
{{- end }}
{{- end -}}

{{- /* (memory, over): the container's requests under what the values say. */ -}}
{{- define "cinder-csi.resources" -}}
{{- $r := dict "requests" (dict "cpu" "10m" "memory" .memory) -}}
{{- $r = mergeOverwrite $r (.over | default dict) -}}
{{- range $what, $limit := $r.limits -}}
{{- $request := get $r.requests $what -}}
{{- if and $request (lt (include "cinder-csi.amount" $limit | float64) (include "cinder-csi.amount" $request | float64)) }}{{ fail (printf "resources: the limit of %s, %s, is below the request, %s; raise the limit, or set the request too" $what $limit $request) }}{{ end -}}
{{- end -}}
{{- toYaml $r -}}
{{- end -}}

{{- /* A quantity of Kubernetes as a number. */ -}}
{{- define "cinder-csi.amount" -}}
{{- $units := dict "n" 1e-9 "u" 1e-6 "m" 1e-3 "k" 1e3 "M" 1e6 "G" 1e9 "T" 1e12 "P" 1e15 "E" 1e18 "Ki" 1024 "Mi" 1048576 "Gi" 1073741824 "Ti" 1099511627776 "Pi" 1125899906842624 "Ei" 1152921504606846976 -}}
{{- $unit := regexFind "[KMGTPE]i$|[numkMGTPE]$" (toString .) -}}
{{- mulf (trimSuffix $unit (toString .) | float64) (get $units $unit | default 1 | float64) -}}
{{- end -}}

{{- /* (what, classes): no two objects of one kind may have one name: the second would replace the first. */ -}}
{{- define "cinder-csi.ownNames" -}}
{{- $what := .what -}}
{{- $names := list -}}
{{- range .classes -}}
{{- if has .name $names }}{{ fail (printf "two %s have the name %s" $what .name) }}{{ end -}}
{{- $names = append $names .name -}}
{{- end -}}
{{- end -}}

{{- /* (root, class): a Secret that a class names is read by a sidecar, which needs a rule for it. Kubelet reads those of a node by itself. */ -}}
{{- define "cinder-csi.classSecrets" -}}
{{- $rules := .root.Values.rbac.extraRules | default dict -}}
{{- $class := .class -}}
{{- $sidecars := dict "provisioner" "provisioner" "controller-publish" "attacher" "controller-expand" "resizer" "snapshotter" "snapshotter" "snapshotter-list" "snapshotter" "snapshotter-get" "snapshotter" -}}
{{- range $operation, $sidecar := $sidecars -}}
{{- $key := printf "csi.storage.k8s.io/%s-secret-name" $operation -}}
{{- if hasKey ($class.parameters | default dict) $key -}}
{{- $may := false -}}
{{- range get $rules $sidecar | default list }}{{ if or (has "secrets" .resources) (has "*" .resources) }}{{ $may = true }}{{ end }}{{ end -}}
{{- if not $may }}{{ fail (printf "class %s, parameter %s: the %s may not read Secrets, so each object of the class would fail; give it the right in rbac.extraRules.%s, or remove the parameter" $class.name $key $sidecar $sidecar) }}{{ end -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{- /* (proxy, extra): an additional variable replaces the proxy variable of the same name: a name may stand only once. */ -}}
{{- define "cinder-csi.env" -}}
{{- $names := list -}}
{{- range .extra -}}{{- $names = append $names .name -}}{{- end -}}
{{- $env := list -}}
{{- range list (list "HTTP_PROXY" .proxy.http) (list "HTTPS_PROXY" .proxy.https) (list "NO_PROXY" .proxy.noProxy) -}}
{{- if and (last .) (not (has (first .) $names)) -}}
{{- $env = append $env (dict "name" (first .) "value" (last .)) -}}
{{- end -}}
{{- end -}}
{{- with concat $env (.extra | default list) -}}
env:
{{ toYaml . }}
{{- end -}}
{{- end -}}

{{- /* (base, extra): the arguments; an additional argument replaces the one with the same flag, because no flag may stand twice. */ -}}
{{- define "cinder-csi.args" -}}
{{- $flags := list -}}
{{- range .extra | default list -}}{{- $flags = append $flags (splitList "=" . | first) -}}{{- end -}}
args:
{{- range .base }}
{{- if not (has (splitList "=" . | first) $flags) }}
- {{ . }}
{{- end }}
{{- end }}
{{- range .extra | default list }}
- {{ . | quote }}
{{- end }}
{{- end -}}

{{- /* (default, over): timings of a probe. mergeOverwrite would ignore a 0. Kubernetes does not keep one, and Argo CD would compare for ever. */ -}}
{{- define "cinder-csi.timings" -}}
{{- $timings := .default -}}
{{- range $key, $value := .over | default dict -}}{{- if $value -}}{{- $_ := set $timings $key ($value | int64) -}}{{- else -}}{{- $_ := unset $timings $key -}}{{- end -}}{{- end -}}
{{- toYaml $timings -}}
{{- end -}}


{{- /* (values, tolerations): with that of the start-up taint where the driver removes it, unless one tolerates every taint. On a new cluster each
node has the taint, and the controller must run somewhere. */ -}}
{{- define "cinder-csi.tolerations" -}}
{{- $tolerations := .tolerations | default list -}}
{{- $all := not .values.nodeLifecycle.startupTaint -}}
{{- range $tolerations -}}
{{- if and (eq (get . "operator" | default "") "Exists") (not (get . "key")) (not (get . "effect")) }}{{ $all = true }}{{ end -}}
{{- end -}}
{{- if not $all -}}
{{- $tolerations = append $tolerations (dict "key" (print .values.driver.name "/agent-not-ready") "operator" "Exists") -}}
{{- end -}}
{{- dict "tolerations" $tolerations | toJson -}}
{{- end -}}

{{- /* The pod's token as automountServiceAccountToken would mount it into every container. */ -}}
{{- define "cinder-csi.apiAccessVolume" -}}
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
{{- end -}}

{{- /* (namespace): HyperShift places the pods of one hosted control plane together. */ -}}
{{- define "cinder-csi.hostedAffinity" -}}
nodeAffinity:
  preferredDuringSchedulingIgnoredDuringExecution:
  - weight: 50
    preference:
      matchExpressions:
      - key: hypershift.openshift.io/control-plane
        operator: In
        values:
        - "true"
  - weight: 100
    preference:
      matchExpressions:
      - key: hypershift.openshift.io/cluster
        operator: In
        values:
        - {{ . | quote }}
podAffinity:
  preferredDuringSchedulingIgnoredDuringExecution:
  - weight: 100
    podAffinityTerm:
      labelSelector:
        matchLabels:
          hypershift.openshift.io/hosted-control-plane: {{ . | quote }}
      topologyKey: kubernetes.io/hostname
{{- end -}}

{{- /* A kubelet may read the Secrets of the pods on its node. So pods with the credentials of the project prefer nodes without the pods of tenants. */ -}}
{{- define "cinder-csi.controlPlaneAffinity" -}}
nodeAffinity:
  preferredDuringSchedulingIgnoredDuringExecution:
  - weight: 100
    preference:
      matchExpressions:
      - key: node-role.kubernetes.io/control-plane
        operator: Exists
{{- end -}}

{{- /* What the values of a role say about its pods, except its affinity. */ -}}
{{- define "cinder-csi.placement" -}}
priorityClassName: {{ .priorityClassName | quote }}
nodeSelector:
  {{- toYaml (mergeOverwrite (dict) (.nodeSelector | default dict) (dict "kubernetes.io/os" "linux")) | nindent 2 }}
tolerations: {{ toJson .tolerations }}
{{- if .imagePullSecrets }}
imagePullSecrets:
{{- range .imagePullSecrets }}
- name: {{ . | quote }}
{{- end }}
{{- end }}
{{- with .topologySpreadConstraints }}
topologySpreadConstraints:
{{ toYaml . }}
{{- end }}
{{- with .hostAliases }}
hostAliases:
{{ toYaml . }}
{{- end }}
{{- with .dnsPolicy }}
dnsPolicy: {{ . }}
{{- end }}
{{- with .dnsConfig }}
dnsConfig:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .initContainers }}
initContainers:
{{ toYaml . }}
{{- end }}
{{- end -}}

{{- /* (pool): the second cloud.conf of a node pool; empty if the pool needs none. */ -}}
{{- define "cinder-csi.poolConf" -}}
{{- with .volumeAttachLimit -}}
[BlockStorage]
node-volume-attach-limit = {{ . | int64 }}
{{ end -}}
{{- end -}}

{{- define "cinder-csi.poolFile" -}}
pool-{{ .name }}.conf
{{- end -}}

{{- /* The affinity of the node pods outside of pools: a node must not run two of them. Terms of a node affinity are alternatives,
so each of them leaves the pools out. */ -}}
{{- define "cinder-csi.affinityBesidePools" -}}
{{- $affinity := deepCopy .Values.node.affinity -}}
{{- $others := list -}}
{{- range .Values.nodePools -}}
{{- range $key, $value := .nodeSelector -}}
{{- $others = append $others (dict "key" $key "operator" "NotIn" "values" (list $value)) -}}
{{- end -}}
{{- end -}}
{{- if $others -}}
{{- $node := get $affinity "nodeAffinity" | default dict -}}
{{- $required := get $node "requiredDuringSchedulingIgnoredDuringExecution" | default dict -}}
{{- $terms := list -}}
{{- range get $required "nodeSelectorTerms" | default (list dict) -}}
{{- $terms = append $terms (set (deepCopy .) "matchExpressions" (concat (get . "matchExpressions" | default list) $others)) -}}
{{- end -}}
{{- $_ := set $node "requiredDuringSchedulingIgnoredDuringExecution" (dict "nodeSelectorTerms" $terms) -}}
{{- $_ := set $affinity "nodeAffinity" $node -}}
{{- end -}}
{{- toYaml $affinity -}}
{{- end -}}

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

{{- /* The egress rules of NetworkPolicies. */ -}}
{{- define "cinder-csi.dnsEgress" -}}
{{- $p := include "cinder-csi.plane" . | fromYaml -}}
{{- if $p.hosted -}}
# DNS: pods of the management cluster, which need not be OpenShift.
- ports:
  - {protocol: UDP, port: 53}
  - {protocol: TCP, port: 53}
  - {protocol: UDP, port: 5353}
  - {protocol: TCP, port: 5353}
  to:
  - namespaceSelector: {}
  {{- include "cinder-csi.dnsNetworks" . | nindent 2 }}
{{- else if $p.openshift -}}
# OpenShift's DNS
- ports:
  - {protocol: UDP, port: 5353}
  - {protocol: TCP, port: 5353}
  {{- if .Values.networkPolicy.dnsCIDRs }}
  - {protocol: UDP, port: 53}
  - {protocol: TCP, port: 53}
  {{- end }}
  to:
  - namespaceSelector:
      matchLabels:
        kubernetes.io/metadata.name: openshift-dns
  {{- include "cinder-csi.dnsNetworks" . | nindent 2 }}
{{- else -}}
# DNS: pods of this cluster. Which ones they are differs between distributions.
- ports:
  - {protocol: UDP, port: 53}
  - {protocol: TCP, port: 53}
  to:
  - namespaceSelector: {}
  {{- include "cinder-csi.dnsNetworks" . | nindent 2 }}
{{- end }}
{{- end -}}

{{- define "cinder-csi.apiServerPorts" -}}
{{- $listening := list }}
{{- range .Values.networkPolicy.apiServerPorts | default (list 6443) }}
{{- $listening = append $listening (int64 .) }}
{{- end }}
{{- toJson $listening }}
{{- end -}}

{{- define "cinder-csi.apiServerEgress" -}}
{{- $p := include "cinder-csi.plane" . | fromYaml -}}
{{- $listening := include "cinder-csi.apiServerPorts" . | fromJsonArray -}}
# The API server: no selector can name it, and its addresses are no fact of the cloud.
- ports:
  {{- if not (or $p.openshift (has 443.0 $listening)) }}
  - {protocol: TCP, port: 443}
  {{- end }}
  {{- range $listening }}
  - {protocol: TCP, port: {{ . | int64 }}}
  {{- end }}
  {{- with .Values.networkPolicy.apiServerCIDRs }}
  to:
  {{- range . }}
  - ipBlock:
      cidr: {{ . | quote }}
  {{- end }}
  {{- end }}
{{- end -}}

{{- define "cinder-csi.openStackEgress" -}}
# OpenStack
- ports:
  {{- range .Values.networkPolicy.ports }}
  - protocol: TCP
    port: {{ . | int64 }}
  {{- end }}
  {{- with .Values.networkPolicy.cidrs }}
  to:
  {{- range . }}
  - ipBlock:
      cidr: {{ . | quote }}
  {{- end }}
  {{- end }}
{{- end -}}
