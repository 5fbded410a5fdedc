package testenv

import "testing"

func TestOnlyACommittedLineAllowsASkip(t *testing.T) {
	t.Parallel()
	const text = "# comment\nTestA\tnot-root\tneeds a loop device\nTestB\tnot-root\t\nTestC\tno-network\tasks a peer\n"
	for _, c := range []struct {
		name, want string
		ok         bool
	}{
		{"TestA", "needs a loop device", true},
		{"TestB", "", false}, // without a reason
		{"TestC", "", false}, // another condition
		{"TestD", "", false},
	} {
		got, ok := skipReason(text, c.name, "not-root")
		if got != c.want || ok != c.ok {
			t.Errorf("%s: want %q %t, got %q %t", c.name, c.want, c.ok, got, ok)
		}
	}
}
