package printable

import (
	"errors"
	"fmt"
	"testing"
)

func TestAMessageHasTheLinesOfItsErrorsAlone(t *testing.T) {
	const hostile = "x\n::notice::y"
	leaf, rows := errors.New(hostile), Rows("two\n  rows")
	for _, tc := range []struct {
		err  error
		want string
	}{
		{leaf, "x ::notice::y"},
		{rows, "two\n  rows"},
		{errors.Join(leaf), "x ::notice::y"},
		{errors.Join(leaf, rows, leaf), "x ::notice::y\ntwo\n  rows\nx ::notice::y"},
		{fmt.Errorf("%s: %w; do %s", hostile, rows, hostile), "x ::notice::y: two\n  rows; do x ::notice::y"},
		{fmt.Errorf("%s: %w, %w", hostile, errors.Join(rows, leaf), leaf), "x ::notice::y: two\n  rows\nx ::notice::y, x ::notice::y"},
		{fmt.Errorf("%w%w", rows, rows), "two\n  rowstwo\n  rows"},
		{fmt.Errorf("%s\n%w", "not joined", leaf), "not joined x ::notice::y"},
		{fmt.Errorf("%w: %w", leaf, errors.New("")), "x ::notice::y: "},
		{errors.Join(fmt.Errorf("a\nb: %w", errors.Join(leaf, leaf)), errors.New("")), "a b: x ::notice::y\nx ::notice::y "},
		{&other{leaf}, "other\\x1b "},
	} {
		if got := Message(tc.err); got != tc.want {
			t.Errorf("%q: want %q, got %q", tc.err, tc.want, got)
		}
	}
}

// other does not say what it wraps.
type other struct{ error }

func (*other) Error() string   { return "other\x1b\n" }
func (o *other) Unwrap() error { return o.error }
