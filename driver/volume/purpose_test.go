package volume

import "testing"

// A hub keeps something for each purpose for as long as it runs, so there must be few.
func TestAPurposeNamesNoObject(t *testing.T) {
	for what, want := range map[string]string{
		"become available": "become available",
		"become attached to server 9f1c6f0e-0000-4000-8000-000000000001":                                   "become attached to",
		"leave server 9f1c6f0e-0000-4000-8000-000000000001":                                                "leave",
		"become attachable (Cinder has attachment 7a to server 9f, reserved; Nova does not list it there)": "become attachable",
		"be detachable (Cinder does not show its attachments; attachment 8b to server 3c is attached)":     "be detachable",
	} {
		if got := Purpose(WithPurpose(t.Context(), what)); got != want {
			t.Errorf("%q: got %q, want %q", what, got, want)
		}
	}
	if got := Purpose(t.Context()); got != "" {
		t.Errorf("got %q of nothing", got)
	}
}
