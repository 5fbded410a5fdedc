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

{{- /* (what, classes): no two objects of one kind may have one name: the second would replace the first. */ -}}
{{- define "cinder-csi.ownNames" -}}
{{- $what := .what -}}
{{- $names := dict -}}
{{- range .classes -}}
{{- if hasKey $names .name }}{{ fail (printf "two %s have the name %s" $what .name) }}{{ end -}}
{{- $_ := set $names .name true -}}
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
