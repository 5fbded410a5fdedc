package examples

import (
	"testing"

	lua "github.com/yuin/gopher-lua"
	"sigs.k8s.io/yaml"
)

// TestArgoCDShowsTheResultOfTheDriftCheck runs the example with the interpreter of Argo CD, and as there with the object as a global.
func TestArgoCDShowsTheResultOfTheDriftCheck(t *testing.T) {
	var config struct{ Data map[string]string }
	if err := yaml.Unmarshal(read(t, root+"gitops/argocd/drift-health.yaml"), &config); err != nil {
		t.Fatal(err)
	}
	script := config.Data["resource.customizations.health.ConfigMap"]
	if script == "" {
		t.Fatal("the example has no health check of ConfigMaps")
	}
	const name = "cinder-csi-drift-check-status"
	for _, test := range []struct {
		name            string
		data            map[string]string
		status, message string
	}{
		{name, map[string]string{"result": "in-sync", "checkedAt": "T"}, "Healthy", "in sync at T"},
		{name, map[string]string{"result": "drift", "checkedAt": "T", "differences": "a is new\n"}, "Degraded", "drift at T: a is new\n"},
		{name, map[string]string{"result": "failed", "checkedAt": "T", "error": "HTTP 503"}, "Degraded", "the check failed at T: HTTP 503"},
		{name, nil, "Healthy", "no drift check has run yet"},
		{name, map[string]string{"result": "in-sync"}, "Degraded", "no drift check since a time that nobody wrote down"},
		{name, map[string]string{"result": "drift"}, "Degraded", "no drift check since a time that nobody wrote down"},
		{name, map[string]string{"result": "in-sync", "checkedAt": "2026-01-31T06:00:00Z"}, "Degraded", "no drift check since 2026-01-31T06:00:00Z"},
		{name, map[string]string{"result": "in-sync", "checkedAt": "2999-01-31T06:00:00Z"}, "Healthy", "in sync at 2999-01-31T06:00:00Z"},
		{"another", map[string]string{"result": "drift"}, "Healthy", ""},
	} {
		l := lua.NewState()
		obj, metadata := l.NewTable(), l.NewTable()
		metadata.RawSetString("name", lua.LString(test.name))
		obj.RawSetString("metadata", metadata)
		if test.data != nil {
			data := l.NewTable()
			for key, value := range test.data {
				data.RawSetString(key, lua.LString(value))
			}
			obj.RawSetString("data", data)
		}
		l.SetGlobal("obj", obj)
		if err := l.DoString(script); err != nil {
			t.Fatal(err)
		}
		health, is := l.Get(-1).(*lua.LTable)
		if !is {
			t.Fatalf("%v: want a table, got %v", test, l.Get(-1))
		}
		message := ""
		if text, is := health.RawGetString("message").(lua.LString); is {
			message = string(text)
		}
		if got := health.RawGetString("status").String(); got != test.status || message != test.message {
			t.Errorf("%v: got %s, %q", test, got, message)
		}
		l.Close()
	}
}
