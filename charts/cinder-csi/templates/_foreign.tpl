{{- /* Keys of openstack-cinder-csi and of other charts are refused with the name of ours. The schema lets them through for that. */ -}}
{{- define "cinder-csi.foreignGates" -}}
{{- $foreign := pick .Values "affinity" "annotations" "args" "caCert" "cloud" "cloudConfig" "commonAnnotations" "controllerPlugin" "csi" "dnsConfig"
  "dnsPolicy" "driverName" "env" "extraArgs" "extraEnv" "extraLabels" "extraVolumeMounts" "extraVolumes" "fullnameOverride"
  "hostAliases" "image" "imagePullPolicy" "imagePullSecrets" "imageRegistry" "initContainers" "kubeletDir" "labels"
  "livenessProbe" "logLevel" "logVerbosityLevel" "metrics" "nameOverride" "namespace" "nodePlugin" "nodeSelector"
  "podAnnotations" "podDisruptionBudget" "podLabels" "podMonitor" "podSecurityContext" "priorityClassName" "prometheusRule"
  "proxy" "pvcAnnotations" "registry" "replicaCount" "replicas" "resources" "secret" "securityContext" "serviceAccount"
  "serviceMonitor" "sidecars" "snapshotClasses" "storageClass" "strategy" "timeout" "tolerations"
  "topologySpreadConstraints" "updateStrategy" "volumeSnapshotClasses" -}}
{{- if $foreign -}}
{{- $table := .Files.Get "foreign-keys.yaml" | fromYaml -}}
{{- $found := "" -}}
{{- range $key, $value := $foreign -}}
{{- $found = print $found (include "cinder-csi.foreignKey" (dict "at" $key "value" $value "table" $table)) -}}
{{- end -}}
{{- fail (printf "these keys are of other charts; this chart has:%s\n`cinder-csi-generator import FILE` reads values of openstack-cinder-csi" $found) -}}
{{- end -}}
{{- end -}}

{{- /* (at, value, table): a line for each key that the table has at or below a place. */ -}}
{{- define "cinder-csi.foreignKey" -}}
{{- $ := . -}}
{{- if hasKey .table .at -}}
{{ printf "\n  %s: %s" .at (get .table .at) }}
{{- else if and (kindIs "map" .value) .value -}}
{{- range $key, $value := .value -}}
{{- include "cinder-csi.foreignKey" (dict "at" (print $.at "." $key) "value" $value "table" $.table) -}}
{{- end -}}
{{- else -}}
{{ printf "\n  %s: none" .at }}
{{- end -}}
{{- end -}}
