package secret

import (
	"encoding/base64"
	"strings"
	"testing"
)

// The kinds of names, in both directions: a secret that passes is in a repository, and a refused name is in nobody's way to work.
func TestANameSaysWhatItsValueIs(t *testing.T) {
	for name, of := range map[string]struct {
		kind   func(string) Kind
		public string
		secret string
		others string
	}{
		"variables": {
			kind:   Variable,
			public: "LOG_LEVEL HTTPS_PROXY no_proxy OS_AUTH_URL SSL_CERT_FILE GODEBUG TLS_MIN_VERSION",
			secret: "OS_PASSWORD OS_PASS DB_PW DB_PWD PGPASSWORD MYSQL_PWD OS_TOKEN OS_APPLICATION_CREDENTIAL_SECRET OS_APPLICATION_CREDENTIAL_ID API_KEY APIKEY apiKey clientSecret " +
				"ENCRYPTION_KEY encryption-key AWS_ACCESS_KEY_ID SSH_PRIVATE_KEY REGISTRY_AUTH OTEL_EXPORTER_OTLP_HEADERS SESSION_COOKIE KRB5_KEYTAB ADMINPASS GITHUB_TOKEN SIGNINGKEY SSHPASS OS_PASS2 STORAGE_KEY1 HMACKey MYPASS",
			others: "SSL_KEYLOGFILE KEYLOGFILE API_TOKEN_FILE SSH_KEY_PATH SECRET_NAME SECRET_NAMESPACE TOKEN_URL KEYSTONE_HOST KEYBOARD MONKEY TURKEY COMPASS BYPASS PASSAGE AUTHOR HEADER_SIZE KEY_ALGORITHM SIGMA _",
		},
		"flags": {
			kind:   Flag,
			public: "v cloud-config user_agent tls-private-key-file",
			secret: "password auth-token api-key os-password",
			others: "keylogfile token-file keyspace endpoint-of-others",
		},
		"annotations": {
			kind:   Annotation,
			public: "volume.kubernetes.io/selected-node cinder-csi.io/config-hash",
			secret: "example.com/password example.com/db-passwd password x.kubernetes.io/password",
			others: "checksum/secret vault.hashicorp.com/agent-inject-token secret.reloader.stakater.com/reload evilkubernetes.io/x",
		},
		"metadata": {
			kind:   Metadata,
			secret: "password db-token secret credentials",
			others: "billing-key keystone-domain turkey role",
		},
	} {
		for kind, list := range map[Kind]string{Public: of.public, Secret: of.secret, Unknown: of.others} {
			for _, n := range strings.Fields(list) {
				if got := of.kind(n); got != kind {
					t.Errorf("%s: %s: want %d, got %d", name, n, kind, got)
				}
			}
		}
	}
}

// Each form has texts that are one, and texts that only look like it.
func TestAFormSaysWhatATextIs(t *testing.T) {
	const planted = "S3cr3tP4ssw0rd0123456789"
	encoded := func(kind string) string {
		return base64.StdEncoding.EncodeToString([]byte("-----BEGIN " + kind + "-----\n" + planted))
	}
	pair := base64.StdEncoding.EncodeToString([]byte("-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----\n-----BEGIN PRIVATE KEY-----\n" + planted))
	urlSafe := base64.URLEncoding.EncodeToString([]byte("-----BEGIN CERTIFICATE-----\nMM\xfb\xef\xbe\xff\xff\xff-----END CERTIFICATE-----\n-----BEGIN PRIVATE KEY-----\n" + planted))
	for kind, of := range map[string]struct{ is, isNot []string }{
		"a PRIVATE KEY": {[]string{"-----BEGIN EC PRIVATE KEY-----\nx"}, []string{"-----BEGIN CERTIFICATE-----\nx", "-----BEGIN PUBLIC KEY-----", "a private network"}},
		"a PRIVATE KEY in base64": {
			[]string{
				encoded("PRIVATE KEY"), encoded("RSA PRIVATE KEY"), encoded("EC PRIVATE KEY"), encoded("OPENSSH PRIVATE KEY"), encoded("ENCRYPTED PRIVATE KEY"), encoded("DSA PRIVATE KEY"),
				encoded("PGP PRIVATE KEY BLOCK"), pair, pair[:76] + "\n  " + pair[76:], urlSafe,
				strings.Repeat(encoded("CERTIFICATE")+" ", mostKeys+1),
			},
			[]string{encoded("CERTIFICATE"), strings.Repeat(encoded("CERTIFICATE")+" ", mostKeys), encoded("PUBLIC KEY"), encoded("TRUSTED CERTIFICATE")},
		},
		"a login in a URL": {
			[]string{"postgres://user:" + planted + "@db/x", "http://:" + planted + "@redis:6379", "https://u:p/ss@host", "amqp:\\/\\/u:" + planted + "@mq", "see http://u:p@h.", "http://u:p@ss@h"},
			[]string{"https://host:8080/u/@me", "https://host:443/a@b", "https://user@example.com:8443/a:b@c", "https://host/a:b@c", "docker://registry.example/x@sha256:abc", "ssh://git@host:22/x", "http://[fd00::1]:8080/x"},
		},
		"a login before a host and port": {
			[]string{"user:" + planted + "@proxy.example.com:3128", "proxy=user:" + planted + "@10.0.0.1:3128", "user:p@" + planted + "@proxy:3128"},
			[]string{"registry.example:5000/x@sha256:abc", "me@example.com", "a:b", "host:8080/u/@me:1", "cinder-csi-driver:v1@sha256:" + strings.Repeat("0a", 32), "cinder-csi-driver:v1@sha256:" + strings.Repeat("01", 32)},
		},
		"a login of a proxy": {
			[]string{"HTTPS_PROXY=user:" + planted + "@proxy.example.com", "export http_proxy='u:p'@" + planted + "@proxy", `{"ALL_PROXY": "u:p@h"}`, `\"all_proxy\":\"` + planted + `@h\"`, "all_proxy: socks5://user@h"},
			[]string{"HTTPS_PROXY=http://proxy.example.com:3128", "NO_PROXY=a@b", "HTTPS_PROXY=http://proxy by me@example.com", "https_proxy"},
		},
		"a token of Keystone":       {[]string{"gAAAAAB" + planted + planted}, []string{"gAAAA", "bagAAAA"}},
		"a JSON Web Token":          {[]string{"eyJhbGciOiJSUzI1NiJ9.eyJzdWIiOiIxMjM0In0.hunter2"}, []string{"eyJ", "eyJhbGciOiJSUzI1NiJ9"}},
		"a token of OpenShift":      {[]string{"sha256~" + planted}, []string{"sha256:" + strings.Repeat("0a", 32)}},
		"a token of GitLab":         {[]string{"glpat-" + planted}, []string{"global-region", "gl-x", "global-production-cluster-01", "glance-storage-production", "gluster-replacement-tier1"}},
		"a token of GitHub":         {[]string{"ghp_" + planted, "github_pat_" + planted}, []string{"ghp", "github_pat"}},
		"a token of Vault":          {[]string{"hvs." + planted}, []string{"hvs.example.com"}},
		"a token of Slack":          {[]string{"xoxb-" + planted}, []string{"xox-cluster"}},
		"an access key of AWS":      {[]string{"AKIA0123456789ABCDEF"}, []string{"AKIAB", "AKIA0123456789abcdef"}},
		"a header with credentials": {[]string{"Authorization: Basic dXNlcg==", "use bearer " + planted}, []string{"the bearer of bad news", "basic authentication", "authorization: by the platform team", "needs-authorization=true"}},
		"a signed URL":              {[]string{"https://x.blob.example/?sv=1&sig=" + planted, "https://s3.example/x?X-Amz-Signature=" + planted, "https://x.example/?ſig=" + planted}, []string{"https://x/?signal=1", "https://x/?sv=1"}},
	} {
		for _, text := range of.is {
			if got := In(text); got != kind {
				t.Errorf("%s: %q: got %q", kind, text, got)
			}
		}
		for _, text := range of.isNot {
			if got := In(text); got != "" {
				t.Errorf("%s: %q is %q", kind, text, got)
			}
		}
	}
}

// What is around a credential stays.
func TestACredentialIsHiddenAndNothingElse(t *testing.T) {
	const key = "-----BEGIN RSA PRIVATE KEY-----\nProc-Type: 4,ENCRYPTED\nS3cr3t\n-----END RSA PRIVATE KEY"
	for text, want := range map[string]string{
		"use glpat-S3cr3tP4ssw0rd01234 now":                         "use REDACTED now",
		"id eyJhbGciOiJSUzI1NiJ9.eyJzdWIiOiIxMjM0In0.abc, and more": "id REDACTED, and more",
		"https://host:8080/u/@me":                                   "https://host:8080/u/@me",
		"loaded LS0tLS1CRUdJTiBDRVJUSUZJQ0FURS0tLS0t":               "loaded REDACTED",
		"see https://user:S3cr3t@host/v3 there":                     "see https://REDACTED@host/v3 there",
		"by user:S3cr3t@proxy:3128 there":                           "by REDACTED@proxy:3128 there",
		"see https://user:p@S3cr3t@host/v3 there":                   "see https://REDACTED@host/v3 there",
		"by user:p@S3cr3t@proxy:3128 there":                         "by REDACTED@proxy:3128 there",
		"HTTPS_PROXY=user:p@S3cr3t@proxy there":                     "HTTPS_PROXY=REDACTED@proxy there",
		"http_proxy: http://S3cr3t@proxy there":                     "http_proxy: http://REDACTED@proxy there",
		"https://host/x?sv=1&sig=S3cr3t&se=2":                       "https://host/x?sv=1&sig=REDACTED&se=2",
		"Authorization: Basic dXNlcg== and more":                    "Authorization: REDACTED and more",
		key + "----- after it":                                      "-----BEGIN RSA REDACTED after it",
		"it needs a PRIVATE KEY here":                               "it needs a REDACTED here",
	} {
		if got := Hide(text); got != want {
			t.Errorf("%q: want %q, got %q", text, want, got)
		}
	}
}
