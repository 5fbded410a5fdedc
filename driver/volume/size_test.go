package volume

import (
	"math"
	"testing"
)

func TestSizesAreWholeGiB(t *testing.T) {
	for bytes, want := range map[Size]int{0: 0, 1: 1, 1 << 30: 1, 1<<30 + 1: 2, math.MaxInt64: 1 << 33} {
		if got := bytes.RoundUp(); got != want {
			t.Errorf("%d bytes: want %d GiB, got %d", bytes, want, got)
		}
	}
}

func TestTheSmallestSizeInARange(t *testing.T) {
	for name, test := range map[string]struct {
		in   Range
		want Size
		kind Kind
	}{
		"none":             {Range{}, GiB(1), 0},
		"required":         {Range{Required: 3 << 29}, GiB(2), 0},
		"limit alone":      {Range{Limit: GiB(5)}, GiB(1), 0},
		"exact":            {Range{GiB(2), GiB(2)}, GiB(2), 0},
		"no GiB between":   {Range{GiB(2) + 1, GiB(3) - 1}, 0, OutOfRange},
		"more than it has": {Range{Required: math.MaxInt64}, 0, OutOfRange},
		"negative":         {Range{Limit: -1}, 0, InvalidArgument},
	} {
		got, err := test.in.Smallest()
		if got != test.want || KindOf(err) != test.kind {
			t.Errorf("%s: want %s, %s; got %s, %v", name, test.want, test.kind, got, err)
		}
	}
}

func TestIDsThatCannotBe(t *testing.T) {
	for _, id := range []ID{"", "abc", "00000000-0000-4000-8000-00000000000", "00000000-0000-4000-8000-0000000000000", "00000000-0000-4000-8000-00000000000g", "00000000/0000/4000/8000/000000000000", "000000000-000-4000-8000-000000000000"} {
		if id.Exists() {
			t.Errorf("%q may exist", id)
		}
	}
	if !ID("9F432c11-3a0b-4a5e-8e6c-2f5f0e6b7a11").Exists() {
		t.Error("a UUID may not exist")
	}
}
