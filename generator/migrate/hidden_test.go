package migrate

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
)

const workload = `{apiVersion: apps/v1, kind: %s, metadata: {name: c}, spec: {template: {spec: {containers: [{name: p, image: %s, %s}]}}}}`

func controllerWith(fields string) string {
	return fmt.Sprintf(workload, "Deployment", "x/cinder-csi-plugin:v1", fields)
}

func nodesWith(fields string) string {
	return fmt.Sprintf(workload, "DaemonSet", "x/cinder-csi-plugin:v1", fields)
}

// Existing volumes are found by the cluster ID, so it must not be lost.
func TestFlagsInAShellAreRefusedUnlessAFileHasTheClusterID(t *testing.T) {
	for name, fields := range map[string]string{
		"script":                 `command: ["/bin/sh", "-c", "exec /bin/cinder-csi-plugin --cluster=prod --secret=geheim"]`,
		"script that has none":   `command: ["bash", "/run.sh"]`,
		"script as arguments":    `args: ["/bin/sh", "-c", "exec /bin/cinder-csi-plugin $FLAGS"]`,
		"script after a wrapper": `command: ["tini", "--", "sh", "-c", "exec /bin/cinder-csi-plugin \\\n\t--cluster=prod"]`,
	} {
		for _, manifest := range []string{controllerWith(fields), nodesWith(fields)} {
			_, _, err := Import(files(manifest))
			if !errors.Is(err, ErrFile) || !strings.Contains(err.Error(), "a shell has them") || !strings.Contains(err.Error(), "give a further file with the line clusterID: VALUE") || strings.Contains(err.Error(), "geheim") {
				t.Errorf("%s: want a refusal, got %v", name, err)
			}
			spec, notes := imported(t, manifest+"\n---\nclusterID: blue\n")
			if !strings.Contains(notes, "--with-topology: left out: import cannot read it; check spec.topology.mode") {
				t.Errorf("%s: want a note about the topology that nobody read, got:\n%s%s", name, spec, notes)
			}
			if !strings.Contains(spec, "clusterID: blue") || !strings.Contains(notes, "container p flags: left out: a shell has them") || strings.Contains(spec+notes, "geheim") {
				t.Errorf("%s: want the ID of the further file and a note, got:\n%s%s", name, spec, notes)
			}
		}
	}
}

func TestADaemonSetAloneHasTheClusterIDAndTheTopology(t *testing.T) {
	const flags = `args: ["--cluster=%s", "--with-topology=%s", "--v=4"]`
	nodes := nodesWith(fmt.Sprintf(flags, "x", "FALSE"))
	spec, notes := imported(t, nodes)
	for _, want := range []string{"clusterID: x", "mode: disabled", "logLevel: 4"} {
		if !strings.Contains(spec, want) {
			t.Errorf("want %q in:\n%s%s", want, spec, notes)
		}
	}
	for _, want := range []string{"container p --cluster: is now spec.clusterID", "--with-topology and --feature-gates=Topology: is now spec.topology.mode"} {
		if !strings.Contains(notes, want) {
			t.Errorf("want %q in:\n%s", want, notes)
		}
	}
	if spec, notes := imported(t, nodes+"\n---\n"+controllerWith(`args: ["--cluster=red"]`)); !strings.Contains(spec, "clusterID: red") || strings.Contains(notes, "container p --v") {
		t.Errorf("want what the controller has, got:\n%s%s", spec, notes)
	}
}

func TestTopologyThatCannotBeReadIsLeftToAPerson(t *testing.T) {
	const fields = `args: ["--cluster=x", "--with-topology=$(ZONES)"], env: [{name: ZONES, %s}]`
	spec, notes := imported(t, controllerWith(fmt.Sprintf(fields, "valueFrom: {configMapKeyRef: {name: a, key: b}}")))
	if strings.Contains(spec, "topology") || !strings.Contains(notes, "--with-topology: left out: import cannot read it; check spec.topology.mode") {
		t.Errorf("want a note and no topology, got:\n%s%s", spec, notes)
	}
	if spec, notes := imported(t, controllerWith(fmt.Sprintf(fields, `value: "False"`))); !strings.Contains(spec, "mode: disabled") {
		t.Errorf("want the value of the variable, got:\n%s%s", spec, notes)
	}
}

func TestWhatAContainerTakesFromElsewhereHasANote(t *testing.T) {
	manifest := strings.Replace(controllerWith(`args: ["--cluster=x"], envFrom: [{secretRef: {name: login}}, {configMapRef: {name: flags}}]`), "containers:",
		"volumes: [{name: conf, projected: {sources: [{secret: {name: cloud-config}}, {configMap: {name: ca}}, {downwardAPI: {}}]}}], containers:", 1)
	_, notes := imported(t, manifest)
	for _, want := range []string{
		"container p envFrom Secret login: left out", "container p envFrom ConfigMap flags: left out",
		"volume conf: left out: the bundle mounts Secrets of its own. If Secret cloud-config has", "volume conf: left out: the bundle mounts ConfigMaps of its own; if ConfigMap ca has",
	} {
		if !strings.Contains(notes, want) {
			t.Errorf("want %q in:\n%s", want, notes)
		}
	}
}

func TestAMirroredImageIsKnownByItsBinary(t *testing.T) {
	spec, notes := imported(t, fmt.Sprintf(workload, "Deployment", "mirror.example/team/storage:v1", `args: ["/bin/cinder-csi-plugin", "--cluster=x"]`))
	if !strings.Contains(spec, "clusterID: x") {
		t.Errorf("want the ID of the plugin, got:\n%s%s", spec, notes)
	}
	// The operator of OpenShift makes its workloads of the objects that import reads.
	operators := strings.Replace(fmt.Sprintf(workload, "Deployment", "quay.io/x@sha256:1", `args: ["/bin/cinder-csi-plugin", "--cluster=x"]`), "name: c}", "name: openstack-cinder-csi-driver-controller}", 1)
	if _, _, err := Import(files(operators)); !errors.Is(err, ErrFile) {
		t.Errorf("want a workload that import does not read, got %v", err)
	}
}

func TestFlagsThatMayHoldASecretAreWithheld(t *testing.T) {
	spec, notes := imported(t, controllerWith(`args: ["--cluster=x", "--password=geheim", "--auth-token", "geheim", "--proxy=http://u:geheim@p", "--dsn=$(DB_PASSWORD)", "--pprof"],
		env: [{name: DB_PASSWORD, value: geheim}]`))
	values, more := imported(t, "csi: {plugin: {extraArgs: ['--password=geheim', 'u:geheim@p', '--api-key', geheim, '--pprof'], nodePlugin: {extraArgs: ['--token=geheim']}}}")
	if told := spec + notes + values + more; strings.Contains(told, "geheim") || strings.Count(told, "- --pprof") != 3 {
		t.Errorf("want no secret, and the other flag of each, got:\n%s", told)
	}
	for _, name := range []string{"password", "auth-token", "proxy", "dsn"} {
		if want := "container p --" + name + ": left out: it may hold a secret"; !strings.Contains(notes, want) {
			t.Errorf("want %q in:\n%s", want, notes)
		}
	}
	for _, want := range []string{
		"extraArgs --password: left out: it may hold a secret", "extraArgs --api-key: left out: it may hold a secret", "extraArgs --token: left out: it may hold a secret",
		"an argument of extraArgs: left out: it is no flag",
	} {
		if !strings.Contains(more, want) {
			t.Errorf("want %q in:\n%s", want, more)
		}
	}
}

// Kubernetes brings new keys of containers and volumes. None is left out without a line.
func TestEachKeyOfAContainerAndOfAVolumeHasALine(t *testing.T) {
	read := []string{"name", "image", "command", "args", "env", "envFrom", "resources", "terminationMessagePath", "emptyDir"} // used, or the bundle has it too
	for _, c := range []struct {
		of       reflect.Type
		template string // of the object with the key
		line     string
	}{
		{reflect.TypeFor[corev1.Container](), `{apiVersion: apps/v1, kind: Deployment, metadata: {name: c}, spec: {template: {spec: {containers: [{name: p, image: x/cinder-csi-plugin:v1, args: [--cluster=x], %s}]}}}}`, "container p KEY: left out: "},
		{reflect.TypeFor[corev1.Volume](), `{apiVersion: apps/v1, kind: Deployment, metadata: {name: c}, spec: {template: {spec: {volumes: [{name: v, %s}], containers: [{name: p, image: x/cinder-csi-plugin:v1, args: [--cluster=x]}]}}}}`, "volume v: left out: "},
	} {
		for _, field := range reflect.VisibleFields(c.of) {
			key := jsonKey(field)
			if key == "" || strings.Contains(strings.Join(read, " ")+" ", key+" ") {
				continue
			}
			text, err := json.Marshal(filled(field.Type).Interface())
			if err != nil {
				t.Fatal(err)
			}
			_, notes := imported(t, fmt.Sprintf(c.template, key+": "+string(text)))
			if want := strings.Replace(c.line, "KEY", key, 1); !strings.Contains(notes, want) {
				t.Errorf("%s: want %q in:\n%s", key, want, notes)
			}
		}
	}
}

// filled is a value of a type that is not empty.
func filled(of reflect.Type) reflect.Value {
	v := reflect.New(of).Elem()
	switch of.Kind() {
	case reflect.Pointer:
		v.Set(filled(of.Elem()).Addr())
	case reflect.Slice:
		v.Set(reflect.Append(v, filled(of.Elem())))
	case reflect.String:
		v.SetString("x")
	case reflect.Bool:
		v.SetBool(true)
	}
	return v
}

// What others may read is allowed by name: forms of credentials, at each place whose name somebody else chooses. A note has no value.
func TestNoCredentialOfAnyFormIsImported(t *testing.T) {
	const planted = "S3cr3tP4ssw0rd"
	forms := []string{
		planted, "user:" + planted + "@proxy.example.com:3128", "https://user:" + planted + "@proxy.example.com", "x-honeycomb-team=" + planted, "password: " + planted,
		`{"auths":{"r":{"auth":"` + planted + `"}}}`, "chpasswd: root:" + planted, "glpat-" + planted + "01234", "https://x.example/?sv=1&sig=" + planted + "012", "login " + planted,
		"user:" + planted + "@proxy.example.com", "user:p@" + planted + "@proxy.example.com:3128", "http://user:p@" + planted + "@proxy.example.com",
	}
	for place, of := range map[string]struct {
		template string
		words    bool // a single word is carried; of a proxy, everything without a login
	}{
		"a variable of somebody":        {"env: [{name: OTHER, value: %q}]", false},
		"a short name":                  {"env: [{name: DB_PW, value: %q}]", false},
		"the headers of a collector":    {"env: [{name: OTEL_EXPORTER_OTLP_HEADERS, value: %q}]", false},
		"a proxy":                       {"env: [{name: HTTPS_PROXY, value: %q}]", true},
		"a proxy of every scheme":       {"env: [{name: ALL_PROXY, value: %q}]", true},
		"a flag with a secret name":     {"args: ['--api-key=%s']", false},
		"a reference to a secret":       {"args: ['--user-agent=$(DB_PW)'], env: [{name: DB_PW, value: %q}]", false},
		"a reference to a variable":     {"args: ['--user-agent=$(MYNOTE)'], env: [{name: MYNOTE, value: %q}]", false},
		"an annotation of the template": {"annotations: {example.com/note: %q}", true},
		"an annotation that says so":    {"annotations: {example.com/password: %q}", false},
	} {
		for _, form := range forms {
			var manifest string
			if annotations, is := strings.CutPrefix(of.template, "annotations: "); is {
				manifest = "csi: {plugin: {controllerPlugin: {podAnnotations: " + fmt.Sprintf(annotations, form) + "}}}"
			} else if strings.Contains(of.template, "%s") {
				manifest = controllerWith(fmt.Sprintf(of.template, strings.ReplaceAll(form, "'", "''")))
			} else {
				manifest = controllerWith(fmt.Sprintf(of.template, form))
			}
			spec, notes := imported(t, manifest)
			if carried := strings.Contains(spec+notes, planted); carried && !(of.words && form == planted) && !(strings.HasPrefix(place, "a proxy") && !strings.Contains(form, "@")) {
				t.Errorf("%s with %q:\n%s%s", place, form, spec, notes)
			}
		}
	}
}

// What has no secret in it comes along.
func TestWhatIsPublicIsImported(t *testing.T) {
	spec, notes := imported(t, controllerWith(`args: [--cluster=x, --user-agent=me@prod, "--endpoint-type=https://host:8080/u/@me"],
		env: [{name: GODEBUG, value: http2client=0}, {name: SSL_KEYLOGFILE, value: /tmp/k}, {name: NO_PROXY, value: "10.0.0.0/8,.example.com"}]`))
	more, _ := imported(t, "csi: {plugin: {controllerPlugin: {podAnnotations: {prometheus.io/scrape: 'true', team: storage}}}}")
	for _, want := range []string{"GODEBUG: http2client=0", "--user-agent=me@prod", "noProxy: 10.0.0.0/8,.example.com", "prometheus.io/scrape", "team: storage"} {
		if !strings.Contains(spec+more, want) {
			t.Errorf("want %q in\n%s%s", want, spec, more)
		}
	}
	if want := "env SSL_KEYLOGFILE: left out: it may hold a secret, because import does not know the name"; !strings.Contains(notes, want) {
		t.Errorf("want %q in\n%s", want, notes)
	}
}

// A person runs the command, and the manifest chooses its words.
func TestTheCommandForACloudConfNamesTheFileOfTheDriverAndNoOtherWord(t *testing.T) {
	for name, test := range map[string]struct{ conf, secret, want string }{
		"as the driver reads it": {"/etc/config/cloud-config", "conf", `get secret conf -o 'go-template={{index .data "cloud-config" | base64decode}}'`},
		"no key of a Secret":     {"/etc/config/x' ; touch evil #", "conf", `get secret conf -o 'go-template={{index .data "cloud.conf" | base64decode}}'`},
		"no name of a Secret":    {"/etc/config/cloud.conf", "conf; touch evil", `get secret SECRET -o`},
	} {
		manifest := strings.Replace(controllerWith(fmt.Sprintf("args: ['--cluster=x', %q]", "--cloud-config="+test.conf)), "containers:",
			fmt.Sprintf("volumes: [{name: c, secret: {secretName: %q}}], containers:", test.secret), 1)
		if _, notes := imported(t, manifest); !strings.Contains(notes, test.want) || strings.Contains(notes, "base64decode}}' > cloud.conf) touch") {
			t.Errorf("%s: want %s in\n%s", name, test.want, notes)
		}
	}
}

func TestANoteSaysWhichKeyTakesALabel(t *testing.T) {
	for key, want := range map[string]string{"podAnnotations": "spec.roles.controller.podAnnotations", "podLabels": "spec.roles.controller.podLabels"} {
		_, notes := imported(t, "csi: {plugin: {controllerPlugin: {"+key+": {db-password: x}}}}")
		if !strings.Contains(notes, "write it into "+want) {
			t.Errorf("%s: want %s in\n%s", key, want, notes)
		}
	}
}

// A password that nobody escaped has signs that no URL has.
func TestAURLThatMayHaveALoginIsNotImported(t *testing.T) {
	if spec, notes := imported(t, controllerWith(`args: [--cluster=x], env: [{name: OS_AUTH_URL, value: 'http://u:pa"ss@p:1'}]`)); strings.Contains(spec+notes, "ss@p") {
		t.Errorf("got\n%s%s", spec, notes)
	}
}

func TestOnlyATextThatIsAReferenceIsATemplate(t *testing.T) {
	for text, want := range map[string]bool{"ref+vault://a/b": true, "pref+erred": false, "a{{b}}": true, "plain": false} {
		if got := holdsTemplate(text); got != want {
			t.Errorf("%q: want %v", text, want)
		}
	}
}
