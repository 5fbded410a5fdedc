package cloudparity

import "testing"

func openSelected(t *testing.T) *Bed {
	t.Helper()
	b, err := openReal(*bedDir)
	if err != nil {
		t.Fatal(err)
	}
	return b
}
