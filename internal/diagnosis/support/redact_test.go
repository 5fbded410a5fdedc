package support

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/cinder-csi/cinder-csi/test/kit/testenv"
)

const planted = "pl4nted-S3cret"

func TestNoFormOfASecretIsLeftInAText(t *testing.T) {
	for name, text := range map[string]string{
		"cloud.conf":             "password = " + planted,
		"clouds.yaml":            "      password: " + planted + "\n",
		"quoted":                 `password: "` + planted + `"`,
		"single quotes":          `password: 'a b ` + planted + `'`,
		"JSON":                   `{"auth": {"password": "x\"` + planted + `"}}`,
		"JSON in a log":          `msg="body {\"password\":\"` + planted + `\"}"`,
		"application credential": "application-credential-secret=" + planted,
		"OS_ variable":           "OS_APPLICATION_CREDENTIAL_SECRET=" + planted,
		"flag":                   "--os-password " + planted,
		"flag with =":            "--token=" + planted + " --v=5",
		"header":                 "X-Auth-Token: " + planted,
		"Authorization":          "authorization: Digest username=u, response=" + planted,
		"a header in a Go map":   `map[Authorization:[Bearer ` + planted + `]]`,
		"Bearer":                 "sent Bearer " + planted,
		"cookie":                 "Set-Cookie: id=" + planted + "; Path=/",
		"URL":                    "GET https://user:" + planted + "@keystone:5000/v3",
		"URL with a slash":       "GET https://user:a/" + planted + "@keystone:5000/v3",
		"URL in JSON":            `"url":"https:\/\/user:` + planted + `@x"`,
		"query":                  "GET /x?a=b&access_token=" + planted + "&c=d",
		"PEM":                    "-----BEGIN RSA PRIVATE KEY-----\n" + planted + "\n-----END RSA PRIVATE KEY-----",
		"PEM on one line":        "-----BEGIN PRIVATE KEY----- " + planted + " -----END PRIVATE KEY-----",
		"PEM that was cut":       "-----BEGIN EC PRIVATE KEY-----\n" + planted,
		"PEM in base64":          "LS0tLS1CRUdJTiBSU0EgUFJJVkFURSBLRVktLS0tLQ" + strings.ReplaceAll(planted, "-", "+"),
		"kubeconfig":             "    client-key-data: " + planted,
		"kubeconfig token":       "    token: " + planted,
		"block scalar":           "a: b\npassword: |-\n  first line\n  " + planted + "\nnext: c",
		"folded scalar":          "- secret: >\n    " + planted + "\n",
		"JSON Web Token":         "id eyJhbGciOiJSUzI1NiJ9.eyJ" + planted + ".sig-" + planted,
		"Fernet":                 "gAAAAABn" + strings.Repeat("a", 20) + planted,
		"basic":                  "Basic " + planted + "==",
		"a short name":           "env: {DB_PW: " + planted + "}",
		"a key":                  `{"ENCRYPTION_KEY":"` + planted + `"}`,
		"headers of a collector": "OTEL_EXPORTER_OTLP_HEADERS: x-honeycomb-team=" + planted,
	} {
		t.Run(name, func(t *testing.T) {
			for _, form := range []string{planted, strings.ReplaceAll(planted, "-", "+")} {
				if got := NewRedactor().Text(text); strings.Contains(got, form) {
					t.Errorf("got %s", got)
				}
			}
		})
	}
}

// A part of a secret is a leak too.
func TestNoPartOfASecretIsLeftInAText(t *testing.T) {
	for _, test := range []struct{ name, text, want string }{
		{"a quote in a URL", "HTTPS_PROXY=http://user:it's1234secret@proxy:3128", "HTTPS_PROXY=http://REDACTED@proxy:3128"},
		{"an @ in a URL", "GET http://user:p@ss@proxy:3128 failed", "GET http://REDACTED@proxy:3128 failed"},
		{"slashes in a URL", "http://user:p/a/s@proxy", "http://REDACTED@proxy"},
		{"a URL before a digest", "docker://user:p@quay.io/x@sha256:" + strings.Repeat("a1", 32), "docker://REDACTED@quay.io/x@sha256:" + strings.Repeat("a1", 32)},
		{"a comma", "password = abc,def&xyz123", "password = REDACTED"},
		{"a semicolon", "password: hunter2;secret9", "password: REDACTED"},
		{"words", "  - password: correct horse battery staple\nuser: x", "  - password: REDACTED\nuser: x"},
		{"words in a comment", "# export OS_PASSWORD=correct horse", "# export OS_PASSWORD=REDACTED"},
		{"words after a quoted value", `password = "abc" def`, "password = REDACTED"},
		{"words after a quoted key", `"password": correct horse`, `"password": REDACTED`},
		{"a single quote in single quotes", "secret: 'abc''def9'", "secret: 'REDACTED'"},
		{"running text", "sent password=abc,d'ef&\"xyz;123 to x", "sent password=REDACTED to x"},
		{"an assignment", "with token := abc123, ok", "with token := REDACTED ok"},
		{"after a name", "GET /x?secretName=kept&token=abc", "GET /x?secretName=kept&token=REDACTED"},
		{"the next line", "password:\n  hunter2 foo\n  bar\nuser: x", "password: REDACTED\nuser: x"},
		{"the next line of an INI file", "[Global]\npassword =\n\thunter2 foo\nuser = x", "[Global]\npassword = REDACTED\nuser = x"},
		{"a word on the line after secret", "secret:\n  hunter2 foo", "secret: REDACTED"},
		{"a list below its key", "passwords:\n- hunter2\n- foo bar\nuser: x", "passwords: REDACTED\nuser: x"},
		{"a list of an item", "- tokens:\n  - hunter2\n  user: x", "- tokens: REDACTED\n  user: x"},
		{"an array of JSON", `{"passwords": ["abc", "d]ef"], "id": 1}`, `{"passwords": ["REDACTED"], "id": 1}`},
		{"an array of JSON in a log", `msg="{\"tokens\":[\"abc\",\"def\"],\"id\":1}"`, `msg="{\"tokens\":[\"REDACTED\"],\"id\":1}"`},
		{"an array of JSON on some lines", "{\n \"passwords\": [\n  \"abc\",\n  \"def\"\n ],\n \"id\": 1\n}", "{\n \"passwords\": [\"REDACTED\"],\n \"id\": 1\n}"},
		{"an array that was cut", `x "tokens":["abc","de`, `x "tokens":["REDACTED"]`},
		{"an array of YAML", "x: {passwords: [abc d, ef], user: y}", "x: {passwords: [REDACTED], user: y}"},
		{"a value that goes on", "password: correct horse\n  battery staple\n  again\nuser: x", "password: REDACTED\nuser: x"},
		{"a quoted value that goes on", "password: \"correct\n  horse\"\nuser: x", "password: REDACTED\nuser: x"},
		{"an item that goes on", "- password: correct\n    horse\n  user: x", "- password: REDACTED\n  user: x"},
		{"blanks in YAML on one line", "auth: {password: correct horse, user: x}", "auth: {password: REDACTED, user: x}"},
		{"blanks at the end of YAML on one line", "auth: {user: x, password: correct horse}", "auth: {user: x, password: REDACTED}"},
		{"passcode", "x OS_PASSCODE=123456", "x OS_PASSCODE=REDACTED"},
		{"adminPass", `{"adminPass": "abc", "id": 1}`, `{"adminPass": "REDACTED", "id": 1}`},
		{"admin_pass", "x admin_pass=abc", "x admin_pass=REDACTED"},
		{"pwd", "x pwd=abc", "x pwd=REDACTED"},
		{"keyring", "keyring: abc==", "keyring: REDACTED"},
		{"temp_url_sig", "GET /v1/x?temp_url_sig=abc", "GET /v1/x?temp_url_sig=REDACTED"},
		{"OpenShift", "as sha256~abcdefghij-ABCDEFGHIJ_0 at", "as REDACTED at"},
	} {
		t.Run(test.name, func(t *testing.T) {
			if diff := cmp.Diff(test.want, NewRedactor().Text(test.text)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// Somebody has to read the report: JSON stays JSON, and the quotes of a log line stay.
func TestWhatIsAroundASecretStays(t *testing.T) {
	for text, want := range map[string]string{
		`level=INFO msg="token=abc" id=1`:                            `level=INFO msg="token=REDACTED" id=1`,
		`{"msg":"token=abc","id":1}`:                                 `{"msg":"token=REDACTED","id":1}`,
		`body "{\"msg\":\"token=abc\",\"id\":1}"`:                    `body "{\"msg\":\"token=REDACTED\",\"id\":1}"`,
		`{"token":1234,"id":1}`:                                      `{"token":REDACTED,"id":1}`,
		"{\n  \"password\": \"a b\",\n  \"id\": 1\n}":                "{\n  \"password\": \"REDACTED\",\n  \"id\": 1\n}",
		"{\n  \"secret\": {\n    \"token\": \"a\"\n  }\n}":           "{\n  \"secret\": {\n    \"token\": \"REDACTED\"\n  }\n}",
		"secret:\n  secretName: kept\n  token: a":                    "secret:\n  secretName: kept\n  token: REDACTED",
		`{"secrets":[],"id":1}`:                                      `{"secrets":[],"id":1}`,
		"imagePullSecrets:\n- name: kept":                            "imagePullSecrets:\n- name: kept",
		"secrets:\n- name: kept":                                     "secrets:\n- name: kept",
		"password: a\n  user: kept":                                  "password: REDACTED\n  user: kept",
		"password:\nuser: kept":                                      "password:\nuser: kept",
		"image docker://quay.io/x@sha256:" + strings.Repeat("0", 64): "image docker://quay.io/x@sha256:" + strings.Repeat("0", 64),
		"got a new token: refreshed after 3 s":                       "got a new token: REDACTED after 3 s",
	} {
		if diff := cmp.Diff(want, NewRedactor().Text(text)); diff != "" {
			t.Error(diff)
		}
	}
}

func TestWhatIsNoSecretStays(t *testing.T) {
	for _, text := range []string{
		`level=INFO msg="attached" volume=9f445367-ee0c-4f56-93e5-9bdef423e884 request=req-1`,
		"secretName: cloud-config", "--credentials-file=/etc/clouds.yaml", "GET https://keystone:5000/v3/auth", "Basic facts", "mail to a@b.example",
		`{"automountServiceAccountToken": true}`, "tokenExpirationSeconds: 3600", "see https://x/y and z@w", "--kubeconfig=/etc/kubeconfig", "clouds.yaml: permission denied",
	} {
		if got := NewRedactor().Text(text); got != text {
			t.Errorf("want %s, got %s", text, got)
		}
	}
}

func TestAnObjectKeepsItsFormAndLosesItsSecrets(t *testing.T) {
	applied, err := json.Marshal(map[string]any{"kind": "Secret", "data": map[string]any{"x": planted}, "metadata": map[string]any{"name": "s"}})
	if err != nil {
		t.Fatal(err)
	}
	object, err := json.Marshal(map[string]any{
		"kind": "Pod",
		"metadata": map[string]any{
			"name": "p", "managedFields": []any{"manager"},
			"annotations": map[string]any{
				"kubectl.kubernetes.io/last-applied-configuration": string(applied), "other/last-applied-configuration": "{broken " + planted,
				"example.com/token": planted, "note": "password=" + planted,
			},
		},
		"spec": map[string]any{
			"containers": []any{map[string]any{
				"args": []any{"--password", planted, "--cluster=blue"}, "command": []any{"sh", "-c", "login --token " + planted},
				"env": []any{
					map[string]any{"name": "OS_PASSWORD", "value": planted},
					map[string]any{"name": "OS_TOKEN", "valueFrom": map[string]any{"secretKeyRef": map[string]any{"name": "kept-name", "key": "kept-key"}}},
				},
			}},
			"volumes": []any{map[string]any{"secret": map[string]any{"secretName": "kept-secret", "defaultMode": 420}}},
		},
		"data":   map[string]any{"cloud.conf": "[Global]\npassword=" + planted, "settings": `{"auth": {"secret": "` + planted + `"}}`, "plain": "later " + planted, "kubeconfig": "user " + planted + "x"},
		"tokens": []any{planted},
	})
	if err != nil {
		t.Fatal(err)
	}
	value, err := decode(object)
	if err != nil {
		t.Fatal(err)
	}
	r := NewRedactor()
	out, err := json.Marshal(r.Value(value))
	if err != nil {
		t.Fatal(err)
	}
	text := r.Known(string(out))
	if strings.Contains(text, planted) || strings.Contains(text, "managedFields") {
		t.Errorf("got %s", text)
	}
	for _, want := range []string{"kept-name", "kept-key", "kept-secret", "--cluster=blue", "420", `\"name\":\"s\"`} {
		if !strings.Contains(text, want) {
			t.Errorf("%s is lost in %s", want, text)
		}
	}
}

func TestAKnownSecretIsTakenOutWhereverItStands(t *testing.T) {
	r := NewRedactor("it's a \"quoted\"\nsecret", "short")
	for text, want := range map[string]string{
		"x it's a \"quoted\"\nsecret y":     "x REDACTED y",
		`{"a":"it's a \"quoted\"\nsecret"}`: `{"a":"REDACTED"}`,
		"short":                             "short", // an ordinary word is not worth a hole in every log
	} {
		if got := r.Text(text); got != want {
			t.Errorf("want %s, got %s", want, got)
		}
	}
}

// A log may be one line with a key after the other. Each key must not read the rest again.
// Four times the text takes about four times as long, sixteen times if it is quadratic. The shortest of several runs is the least disturbed.
func TestALongLineIsReadInLinearTime(t *testing.T) {
	shortest := func(part string, size int) time.Duration {
		text, least := strings.Repeat(part, size/len(part)), time.Hour
		for range 3 {
			least = min(least, testenv.Processor(t, func() { NewRedactor().Text(text) }))
		}
		return least
	}
	for _, part := range []string{
		"secretName=", "x token=[\n", "x token=|[\n", "x token=['\n", "x token=[\"\n", `x token=[\"` + "\n", "{token: [\n", "\"token\": [\n", "x token=[\"]\n",
		"x token=\"\n", "x token='\n", `x token=\"` + "\n", "x token:\n", "token: |\n", "--token \n", "a://x",
	} {
		linear := false
		for range 3 {
			linear = linear || shortest(part, logBytes/32) < 9*shortest(part, logBytes/128)
		}
		if !linear {
			t.Errorf("%q: four times the text takes more than nine times as long", part)
		}
	}
}

// What stands in a list goes, also after lists that a log has cut.
func TestAListThatIsCutEndsWithItsLine(t *testing.T) {
	for cut := range 2 * mostUnclosed {
		text := strings.Repeat("x token=[cut1 \\x\n", cut)
		if got := NewRedactor().Text(text + "y token=[" + planted + ", " + planted + "]\nkept\n"); strings.Contains(got, planted) || strings.Contains(got, "cut1") || !strings.HasSuffix(got, "kept\n") {
			t.Errorf("%d: got %s", cut, got)
		}
	}
}

func TestANumberBelowASecretKeyIsTakenOut(t *testing.T) {
	for _, text := range []string{
		`{"password": 12345678}`, `{"pin_token": -1234567.5}`, `{"secret": 12345678}`, `{"passwords": [12345678]}`, `{"password": {"value": 12345678}}`,
		`{"kind": "Secret", "data": {"a": 12345678}}`, `{"name": "DB_PASSWORD", "value": 12345678}`, `["--password", 12345678]`, `{"message": "{\"password\": 12345678}"}`,
	} {
		value, err := decode([]byte(text))
		if err != nil {
			t.Fatal(err)
		}
		if got := fmt.Sprint(NewRedactor().Value(value)); strings.Contains(got, "1234567") || !strings.Contains(got, Redacted) {
			t.Errorf("%s: got %s", text, got)
		}
	}
}

func FuzzRedactorNeverPanics(f *testing.F) {
	f.Add("password: |\n  x\n-----BEGIN PRIVATE KEY-----", `{"a": [{"name": "token", "value": "x"}]}`)
	f.Fuzz(func(t *testing.T, text, object string) {
		r := NewRedactor()
		r.Text(text)
		if value, err := decode([]byte(object)); err == nil {
			if _, err := json.Marshal(r.Value(value)); err != nil {
				t.Error(err)
			}
		}
	})
}

// A log may teach as many values as it has lines. Each of them costs no further reading of the text.
func TestManyKnownValuesAreTakenOutInOneReading(t *testing.T) {
	var log, other strings.Builder
	for i := range 20000 {
		fmt.Fprintf(&log, "token=abcdefgh%d\n", i)
		fmt.Fprintf(&other, "abcdefgh%d\n", i)
	}
	for i := range 1000 { // as many lengths of one beginning
		fmt.Fprintf(&log, "token=abcdefgh%s1\n", strings.Repeat("a", i))
		fmt.Fprintf(&other, "abcdefgh%s1\n", strings.Repeat("a", i))
	}
	r := NewRedactor()
	r.Text(log.String())
	took := testenv.Processor(t, func() {
		if got := r.Known(other.String()); strings.Contains(got, "abcdefgh") {
			t.Error("a value is left")
		}
	})
	if took > 3*time.Second { // one reading for each takes 20,000 readings of 300 KB
		t.Errorf("took %s", took)
	}
}

// Two values may begin in one another. No part of either is left.
func TestKnownValuesThatOverlapGoAsAWhole(t *testing.T) {
	r := NewRedactor("one-two-three", "three-four-five", "three-four", `quo"ted-value`)
	for text, want := range map[string]string{
		"a one-two-three-four-five b":          "a REDACTED b",
		"three-four three-four-five":           "REDACTED REDACTED",
		`{"a":"quo\"ted-value"} quo"ted-value`: `{"a":"REDACTED"} REDACTED`,
		"one-two":                              "one-two",
		"":                                     "",
	} {
		if got := r.Known(text); got != want {
			t.Errorf("%q: want %q, got %q", text, want, got)
		}
	}
}

// Of a beginning with too many lengths the longest goes, whatever stands there. One more length is one more reading of the text.
func TestABeginningOfTooManyLengthsGoesAsTheLongest(t *testing.T) {
	for lengths, want := range map[int]string{mostLengths: "abcdefgh-other", mostLengths + 1: Redacted} {
		r := NewRedactor()
		for i := range lengths {
			r.learn("abcdefgh" + strings.Repeat("a", i))
		}
		delete(r.known, "abcdefgh") // the text begins with no other value
		if got := r.Known("abcdefgh-other"); got != want {
			t.Errorf("%d lengths: want %s, got %s", lengths, want, got)
		}
	}
}
