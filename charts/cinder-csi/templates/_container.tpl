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
