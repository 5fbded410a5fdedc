package support

import (
	"encoding/base64"
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// Forty forms in which people keep credentials, at each place of an object where somebody else chooses the name.
func TestNoCredentialOfAnyFormLeavesTheCluster(t *testing.T) {
	const planted = "S3cr3tP4ssw0rd"
	encoded := base64.StdEncoding.EncodeToString([]byte("user:" + planted))
	forms := []string{
		planted, encoded, "/" + planted, "/etc" + planted, "user:" + planted + "@proxy.example.com:3128", "https://user:" + planted + "@proxy.example.com", "x-honeycomb-team=" + planted,
		"password=" + planted, "password: " + planted, "passwd " + planted, "--password " + planted, "--password=" + planted, "pass: " + planted, "pw=" + planted,
		"Bearer " + planted, "Authorization: Basic " + encoded, "Cookie: id=" + planted, "X-Auth-Token: " + planted, "token=" + planted,
		`{"password":"` + planted + `"}`, `{"auths":{"r.example.com":{"auth":"` + encoded + `"}}}`, "[Global]\npassword = " + planted,
		"clouds:\n  a:\n    auth:\n      password: " + planted, "machine x login y password " + planted, "glpat-" + planted + "01234", "ghp_" + planted + "012345678901234567",
		"hvs." + planted + "0123456789", "xoxb-" + planted, "https://x.blob.example.com/?sv=1&sig=" + planted, "https://s3.example.com/x?X-Amz-Signature=" + planted,
		"postgres://user:" + planted + "@db/x", "user=x;pwd=" + planted, "AccountKey=" + planted + "==;", "{{ with secret \"kv/x\" }}" + planted + "{{ end }}",
		"#cloud-config\nchpasswd:\n  list: root:" + planted, "export OS_PASSWORD=" + planted, "echo " + planted + " | login", "sh -c 'login " + planted + "'",
		"-----BEGIN PRIVATE KEY-----\n" + planted + "\n-----END PRIVATE KEY-----", "amqp://guest:" + planted + "@mq:5672/", "redis://:" + planted + "@r:6379", "key=" + planted,
	}
	places := map[string]func(form string) any{
		"a variable": func(f string) any { return fields("env", []any{fields("name", "OTHER", "value", f)}) },
		"headers of a collector": func(f string) any {
			return fields("env", []any{fields("name", "OTEL_EXPORTER_OTLP_HEADERS", "value", f)})
		},
		"an annotation": func(f string) any { return fields("metadata", fields("annotations", fields("example.com/note", f))) },
		"a configuration": func(f string) any {
			return fields("metadata", fields("name", "c"), "data", fields("distribution.yaml", f))
		},
		"a plan":                func(f string) any { return fields("metadata", fields("name", "c"), "data", fields("plan.yaml", f)) },
		"a text of a ConfigMap": func(f string) any { return fields("metadata", fields("name", "c"), "data", fields("x.ini", f)) },
		"binary data":           func(f string) any { return fields("metadata", fields("name", "c"), "binaryData", fields("x", f)) },
		"an unknown flag":       func(f string) any { return fields("args", []any{"--login=" + f}) },
		"a flag of one letter":  func(f string) any { return fields("command", []any{"/bin/mysql", "-p" + f}) },
		"a header of a probe": func(f string) any {
			return fields("livenessProbe", fields("httpGet", fields("httpHeaders", []any{fields("name", "X-Gate", "value", f)})))
		},
		"a volume of another driver": func(f string) any {
			return fields("volumes", []any{fields("name", "v", "csi", fields("driver", "x.example.com", "volumeAttributes", fields("x", f))), fields("name", "w", "flexVolume", fields("options", fields("x", f)))})
		},
		"the first argument in lower case": func(f string) any { return fields("args", []any{strings.ToLower(f)}) },
		"the first argument":               func(f string) any { return fields("args", []any{f}) },
		"a word between variables":         func(f string) any { return fields("args", []any{"$(USER):" + f + "@$(HOST)", "$(A)" + f + "$(B)"}) },
		"a word of a command":              func(f string) any { return fields("command", []any{"/bin/sh", "-c", f}) },
	}
	// The name of a proxy is public, and its address may have a login in each of the ways that Go and curl read.
	proxies := []string{
		"user:" + planted + "@proxy.example.com:3128", "user:" + planted + "@proxy.example.com", "user:p@" + planted + "@proxy.example.com:3128", "user:" + planted + "@w0rd@proxy.example.com",
		"http://user:p@" + planted + "@proxy.example.com", "http://user:" + planted + "@w0rd@proxy.example.com:3128/", planted + "@proxy", "socks5://" + planted + "@[fd00::1]:1080",
	}
	public := map[string]func(form string) any{
		"a public variable": func(f string) any { return fields("env", []any{fields("name", "HTTPS_PROXY", "value", f)}) },
		"one in lower case": func(f string) any { return fields("env", []any{fields("name", "all_proxy", "value", f)}) },
		"a saved object": func(f string) any {
			saved, _ := json.Marshal(fields("env", []any{fields("name", "HTTP_PROXY", "value", f)}))
			return fields("metadata", fields("annotations", fields("kubectl.kubernetes.io/last-applied-configuration", string(saved))))
		},
		"a setting": func(f string) any { return fields("metadata", fields("name", "c"), "data", fields("HTTPS_PROXY", f)) },
		"a message": func(f string) any { return fields("message", "with HTTPS_PROXY="+f+" in the environment") },
	}
	if len(forms) < 40 {
		t.Fatal(len(forms), "forms")
	}
	for _, of := range []struct {
		places map[string]func(form string) any
		forms  []string
	}{{places, slices.Concat(forms, proxies)}, {public, proxies}} {
		for place, make := range of.places {
			for _, form := range of.forms {
				out, err := json.Marshal(NewRedactor().Value(make(form)))
				if err != nil {
					t.Fatal(err)
				}
				if strings.Contains(strings.ToLower(string(out)), strings.ToLower(planted)) || strings.Contains(string(out), encoded) {
					t.Errorf("%s with %q: %s", place, form, out)
				}
			}
		}
	}
}

// A message of an event is a text that everybody reads. Only forms that show what they are can be found there.
func TestACredentialIsFoundInATextByItsForm(t *testing.T) {
	const planted = "S3cr3tP4ssw0rd"
	for name, of := range map[string]any{
		"a token of GitLab":         fields("message", "use glpat-"+planted+"01234"),
		"a token of GitHub":         fields("message", "use ghp_"+planted+"0123456789012345678901"),
		"a token of Vault":          fields("message", "use hvs."+planted+"0123456789"),
		"the signature of a URL":    fields("message", "https://x.blob.example/?sv=1&sig="+planted),
		"the signature of a bucket": fields("message", "https://s3.example/x?X-Amz-Signature="+planted),
	} {
		out, err := json.Marshal(NewRedactor().Value(of))
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(string(out), planted) {
			t.Errorf("%s: %s", name, out)
		}
	}
}

func TestWhatTheProjectWritesIsShown(t *testing.T) {
	of := fields(
		"metadata", fields("name", "kept-pod", "annotations", fields("volume.kubernetes.io/selected-node", "node-1", "cinder-csi.io/config-hash", "abc")),
		"env", []any{fields("name", "LOG_LEVEL", "value", "5"), fields("name", "NO_PROXY", "value", "10.0.0.0/8"), fields("name", "HTTPS_PROXY", "value", "http://proxy.example.com:3128")},
		"args", []any{"guest-token", "--v=5", "--csi-address=/csi/csi.sock", "$(DRIVER_NAME)", "/etc/x"}, "command", []any{"cinder-csi-driver"},
		"data", fields("DRIVER_NAME", "cinder.csi.openstack.org"),
	)
	want, _ := json.Marshal(of)
	got, err := json.Marshal(NewRedactor().Value(of))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), string(got)); diff != "" {
		t.Error(diff)
	}
}

// fields makes a map of keys and values in turn.
func fields(pairs ...any) map[string]any {
	m := map[string]any{}
	for i := 0; i < len(pairs); i += 2 {
		m[pairs[i].(string)] = pairs[i+1]
	}
	return m
}
