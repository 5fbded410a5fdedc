{{- /* (root, plane): the CronJob of the drift check. */ -}}
{{- define "cinder-csi.driftCheckJob" -}}
{{- $root := .root -}}
{{- $p := .plane -}}
apiVersion: batch/v1
kind: CronJob
metadata:
  name: cinder-csi-drift-check
  namespace: {{ $p.controllerNS | quote }}
  labels:
    {{- include "cinder-csi.labels" $root | nindent 4 }}
    app.kubernetes.io/component: drift-check
spec:
  schedule: {{ $root.Values.driftCheck.schedule | quote }}
  concurrencyPolicy: Forbid
  # A run that could not start in an hour, because the cluster was down, is not made up for.
  startingDeadlineSeconds: 3600
  successfulJobsHistoryLimit: 1
  failedJobsHistoryLimit: 1
  jobTemplate:
    spec:
      backoffLimit: 3
      # Exit code 2 is drift, 64 a configuration that cannot be used: another attempt would find the same. After 1 the cloud did not answer,
      # and another attempt may succeed. A pod that a drain evicted does not count.
      podFailurePolicy:
        rules:
        - action: FailJob
          onExitCodes:
            containerName: generator
            operator: In
            values: [2, 64]
        - action: Ignore
          onPodConditions:
          - type: DisruptionTarget
            status: "True"
      activeDeadlineSeconds: 600
      template:
        metadata:
          labels:
            {{- range $key, $value := $root.Values.controller.podLabels }}
            {{- if not (or (eq $key "app") (hasPrefix "app.kubernetes.io/" $key) (eq $key "hypershift.openshift.io/need-management-kas-access")) }}
            {{ $key | quote }}: {{ $value | quote }}
            {{- end }}
            {{- end }}
            {{- if $p.hosted }}
            hypershift.openshift.io/need-management-kas-access: "true"
            {{- end }}
            app: cinder-csi-drift-check
            app.kubernetes.io/name: cinder-csi
            app.kubernetes.io/part-of: cinder-csi
            app.kubernetes.io/component: drift-check
          {{- if $p.openshift }}
          annotations:
            openshift.io/required-scc: restricted-v2
          {{- end }}
        spec:
          serviceAccountName: cinder-csi-drift-check
          automountServiceAccountToken: false
          restartPolicy: Never
          {{- $c := $root.Values.controller }}
          {{- $tolerations := include "cinder-csi.tolerations" (dict "values" $root.Values "tolerations" $c.tolerations) | fromJson }}
          {{- $placed := mergeOverwrite (dict) (pick $c "priorityClassName" "nodeSelector" "imagePullSecrets" "hostAliases" "dnsPolicy" "dnsConfig") $tolerations }}
          {{- include "cinder-csi.placement" $placed | nindent 10 }}
          {{- if not $c.affinity }}
          affinity:
            {{- if $p.hosted }}
            {{- include "cinder-csi.hostedAffinity" $p.controllerNS | nindent 12 }}
            {{- else }}
            {{- include "cinder-csi.controlPlaneAffinity" $root | nindent 12 }}
            {{- end }}
          {{- end }}
          {{- with $c.affinity.nodeAffinity }}
          affinity:
            nodeAffinity:
              {{- toYaml . | nindent 14 }}
          {{- end }}
          securityContext:
            runAsNonRoot: true
            {{- with include "cinder-csi.user" $root }}
            {{- . | nindent 12 }}
            {{- end }}
            seccompProfile:
              type: RuntimeDefault
          {{- include "cinder-csi.driftCheckContainers" (dict "root" $root "ca" (include "cinder-csi.ca" $root | fromYaml)) | nindent 10 }}
{{- end -}}
