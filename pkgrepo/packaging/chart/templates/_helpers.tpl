{{- define "pkgrepo.name" -}}
{{- if contains "pkgrepo" .Release.Name }}{{ .Release.Name | trunc 52 | trimSuffix "-" }}{{ else }}{{ printf "%s-pkgrepo" .Release.Name | trunc 52 | trimSuffix "-" }}{{ end }}
{{- end }}

{{- define "pkgrepo.selector" -}}
app.kubernetes.io/name: pkgrepo
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- define "pkgrepo.labels" -}}
{{ include "pkgrepo.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version }}
{{- end }}

{{- define "pkgrepo.image" -}}
{{- with .Values.image }}{{ .repository }}{{ if .digest }}@{{ .digest }}{{ else }}:{{ .tag | default $.Chart.AppVersion }}{{ end }}{{ end }}
{{- end }}

{{- /* The pod of both kinds of catalog. */}}
{{- define "pkgrepo.pod" -}}
{{- $postgresql := eq .Values.catalog "postgresql" -}}
metadata:
  labels:
    {{- include "pkgrepo.labels" . | nindent 4 }}
  annotations:
    checksum/settings: {{ include (print $.Template.BasePath "/configmap.yaml") . | sha256sum }}
    {{- with .Values.podAnnotations }}
    {{- toYaml . | nindent 4 }}
    {{- end }}
spec:
  serviceAccountName: {{ include "pkgrepo.name" . }}
  automountServiceAccountToken: false
  # The server waits up to a minute for transfers (server.shutdown_grace).
  terminationGracePeriodSeconds: 90
  {{- with .Values.imagePullSecrets }}
  imagePullSecrets:
    {{- toYaml . | nindent 4 }}
  {{- end }}
  securityContext:
    runAsNonRoot: true
    runAsUser: 10001
    runAsGroup: 10001
    fsGroup: 10001
    fsGroupChangePolicy: OnRootMismatch
    seccompProfile:
      type: RuntimeDefault
  containers:
    - name: pkgrepo
      image: {{ include "pkgrepo.image" . | quote }}
      imagePullPolicy: {{ .Values.image.pullPolicy }}
      securityContext:
        allowPrivilegeEscalation: false
        readOnlyRootFilesystem: true
        capabilities:
          drop: [ALL]
      ports:
        - name: http
          containerPort: 8081
      env:
        {{- if .Values.admin.existingSecret }}
        - name: PKGREPO_ADMIN_PASSWORD_FILE
          value: /run/secrets/admin/admin-password
        {{- end }}
        {{- if $postgresql }}
        - name: PKGREPO_DATABASE__PASSWORD_FILE
          value: /run/secrets/database/database-password
        {{- if .Values.bucket.existingSecret }}
        - name: AWS_ACCESS_KEY_ID
          valueFrom:
            secretKeyRef:
              name: {{ .Values.bucket.existingSecret }}
              key: access-key-id
        - name: AWS_SECRET_ACCESS_KEY
          valueFrom:
            secretKeyRef:
              name: {{ .Values.bucket.existingSecret }}
              key: secret-access-key
        {{- end }}
        {{- end }}
        {{- range $name, $value := .Values.extraEnv }}
        - name: {{ $name }}
          value: {{ $value | quote }}
        {{- end }}
      startupProbe:
        httpGet: {path: /healthz, port: http}
        periodSeconds: 2
        timeoutSeconds: 5
        failureThreshold: 150
      livenessProbe:
        httpGet: {path: /healthz, port: http}
        periodSeconds: 10
        timeoutSeconds: 5
        failureThreshold: 6
      readinessProbe:
        httpGet: {path: /readyz, port: http}
        periodSeconds: 5
        timeoutSeconds: 5
      resources:
        {{- toYaml .Values.resources | nindent 8 }}
      volumeMounts:
        - name: data
          mountPath: /var/lib/pkgrepo
        - name: settings
          mountPath: /etc/pkgrepo
          readOnly: true
        - name: tmp
          mountPath: /tmp
        {{- if .Values.admin.existingSecret }}
        - name: admin
          mountPath: /run/secrets/admin
          readOnly: true
        {{- end }}
        {{- if $postgresql }}
        - name: database
          mountPath: /run/secrets/database
          readOnly: true
        # Every pod needs the same key; the server reads it in its data folder.
        - name: database
          mountPath: /var/lib/pkgrepo/credentials.key
          subPath: credentials.key
          readOnly: true
        {{- end }}
  volumes:
    - name: settings
      configMap:
        name: {{ include "pkgrepo.name" . }}
    - name: tmp
      emptyDir: {}
    {{- if .Values.admin.existingSecret }}
    - name: admin
      secret:
        secretName: {{ .Values.admin.existingSecret }}
        items: [{key: admin-password, path: admin-password}]
        defaultMode: 0440
    {{- end }}
    {{- if $postgresql }}
    - name: database
      secret:
        secretName: {{ .Values.postgresql.existingSecret }}
        items:
          - {key: database-password, path: database-password}
          - {key: credentials.key, path: credentials.key}
        defaultMode: 0440
    # Uploads on their way to the bucket.
    - name: data
      emptyDir: {}
    {{- else if .Values.persistence.existingClaim }}
    - name: data
      persistentVolumeClaim:
        claimName: {{ .Values.persistence.existingClaim }}
    {{- end }}
  {{- if $postgresql }}
  topologySpreadConstraints:
    - maxSkew: 1
      topologyKey: kubernetes.io/hostname
      whenUnsatisfiable: ScheduleAnyway
      labelSelector:
        matchLabels:
          {{- include "pkgrepo.selector" . | nindent 10 }}
  {{- end }}
  {{- with .Values.nodeSelector }}
  nodeSelector:
    {{- toYaml . | nindent 4 }}
  {{- end }}
  {{- with .Values.tolerations }}
  tolerations:
    {{- toYaml . | nindent 4 }}
  {{- end }}
  {{- with .Values.affinity }}
  affinity:
    {{- toYaml . | nindent 4 }}
  {{- end }}
{{- end }}
