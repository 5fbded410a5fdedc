{{- /* (root, plane, kubeletDir): the volumes of a node pod. */ -}}
{{- define "cinder-csi.nodeVolumes" -}}
{{- $root := .root -}}
{{- $p := .plane -}}
{{- $kubeletDir := .kubeletDir -}}
- name: plugin-dir
  hostPath:
    path: {{ printf "%s/plugins/%s" $kubeletDir $root.Values.driver.name | quote }}
    type: DirectoryOrCreate
- name: registration-dir
  hostPath:
    path: {{ print $kubeletDir "/plugins_registry" | quote }}
    type: Directory
- name: kubelet-dir
  hostPath:
    path: {{ $kubeletDir | quote }}
    type: Directory
- name: dev
  hostPath:
    path: /dev
    type: Directory
- name: config
  configMap:
    name: cinder-csi-node-config
- name: tmp
  emptyDir: {}
- name: run
  emptyDir: {}
{{- if $p.selinux }}
- name: etc-selinux
  hostPath:
    path: /etc/selinux
    type: DirectoryOrCreate
- name: sys-fs
  hostPath:
    path: /sys/fs
    type: Directory
{{- end }}
{{- if $root.Values.nodeLifecycle.drainHook }}
{{- include "cinder-csi.apiAccessVolume" $root | nindent 0 }}
{{- end }}
{{- end -}}
