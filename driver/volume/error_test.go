package volume

import (
	"errors"
	"fmt"
	"testing"
)

func TestEveryWrappedErrorCounts(t *testing.T) {
	plain, written := Errorf(NotFound, "no server"), Errorf(Unavailable, "no answer").AfterWrite()
	for name, err := range map[string]error{
		"two in a sentence":                Errorf(NotFound, "%w; %w", plain, written),
		"two in a sentence, the other way": Errorf(NotFound, "%w; %w", written, plain),
		"joined":                           errors.Join(plain, written),
		"joined, the other way":            errors.Join(written, plain),
		"joined in a sentence":             Errorf(NotFound, "%w", errors.Join(plain, written)),
		"below others":                     fmt.Errorf("%w", Errorf(Busy, "%w", errors.Join(plain, fmt.Errorf("%w, %w", plain, written)))),
	} {
		if !MayHaveWritten(err) {
			t.Errorf("%s: the write is forgotten", name)
		}
		if !errors.Is(err, plain) || !errors.Is(err, written) {
			t.Errorf("%s: a cause cannot be found", name)
		}
		if marked := AfterWrite(err); marked != err {
			t.Errorf("%s: marked twice", name)
		}
	}
	for name, err := range map[string]error{
		"nil": nil, "joined": errors.Join(plain, plain), "a sentence": Errorf(Busy, "%w, %w", plain, plain), "in text only": Errorf(Busy, "%v", written),
	} {
		if MayHaveWritten(err) {
			t.Errorf("%s: nothing was written", name)
		}
	}
	if err := Errorf(Busy, "%w and %w", plain, written); KindOf(err) != Busy || err.Error() != "no server and no answer" {
		t.Errorf("got %v of kind %s", err, KindOf(err))
	}
}

func TestEveryKindHasItsOwnName(t *testing.T) {
	kinds := map[string]Kind{}
	for k := range KindCount {
		if k.String() == "" {
			t.Errorf("kind %d has no name in kindNames", int(k))
		} else if other, taken := kinds[k.String()]; taken {
			t.Errorf("kinds %d and %d have the same name %q", int(other), int(k), k)
		}
		kinds[k.String()] = k
	}
}
