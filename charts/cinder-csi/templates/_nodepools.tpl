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
