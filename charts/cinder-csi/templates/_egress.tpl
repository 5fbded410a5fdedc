{{- /* Servers of DNS that are no pods. */ -}}
{{- define "cinder-csi.dnsNetworks" -}}
{{- range .Values.networkPolicy.dnsCIDRs }}
- ipBlock:
    cidr: {{ . | quote }}
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
