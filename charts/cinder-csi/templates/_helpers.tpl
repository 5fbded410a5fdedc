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
