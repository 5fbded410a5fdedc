package migrate

import (
	"strings"
	"testing"
)

// secret.data of the values holds a cloud.conf, each key of which becomes something else. One line for all of it named the first of them.
func TestNoLineSaysThatASecretBecameOneOfItsKeys(t *testing.T) {
	_, notes := imported(t, `secret:
  data:
    cloud.conf: |-
      [Global]
      auth-url=https://keystone.example/v3
      [BlockStorage]
      node-volume-attach-limit=20
      [Metadata]
      search-order=configDrive
`)
	for _, line := range []string{
		"file secret.data cloud.conf: [BlockStorage] node-volume-attach-limit: is now spec.volumeAttachLimit",
		"file secret.data cloud.conf: [Metadata] search-order: is now spec.driver.metadata",
	} {
		if !strings.Contains(notes, line) {
			t.Errorf("want %q in:\n%s", line, notes)
		}
	}
	if strings.Contains(notes, "file: secret.data:") {
		t.Errorf("want lines about its keys alone, got:\n%s", notes)
	}
}
