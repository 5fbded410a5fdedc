package volume

import "fmt"

// Size is a volume size in bytes. Cinder counts whole GiB, CSI counts bytes; this file holds every conversion.
type Size int64

// GiB is the size of n gibibytes.
func GiB(n int) Size { return Size(n) << 30 }

// RoundUp is the size in whole GiB, rounded up, as Cinder wants it.
func (s Size) RoundUp() int {
	if s <= 0 {
		return 0
	}
	return int((s-1)>>30) + 1
}

// String shows GiB if the size is a whole number of them, otherwise bytes.
func (s Size) String() string {
	if s >= 0 && s%(1<<30) == 0 {
		return fmt.Sprintf("%d GiB", s>>30)
	}
	return fmt.Sprintf("%d bytes", int64(s))
}

// Range is the range of sizes that a request allows, in bytes; 0 in either field means no limit (CSI specification, CapacityRange).
type Range struct {
	Required, Limit Size
}

// Smallest is the smallest size in whole GiB that r allows, at least 1 GiB. InvalidArgument if r holds a negative number, OutOfRange if r
// allows no whole number of GiB.
func (r Range) Smallest() (Size, error) {
	if r.Required < 0 || r.Limit < 0 {
		return 0, Errorf(InvalidArgument, "the requested capacity range, %d to %d bytes, contains a negative number", int64(r.Required), int64(r.Limit))
	}
	size := GiB(max(1, r.Required.RoundUp()))
	if r.Limit > 0 && size > r.Limit || size < 0 {
		return 0, Errorf(OutOfRange, "Cinder creates volumes of whole GiB, and none is between the required %s and the limit %s", r.Required, r.Limit)
	}
	return size, nil
}

// Allows reports whether a volume of that size satisfies r.
func (r Range) Allows(size Size) bool {
	return size >= r.Required && (r.Limit == 0 || size <= r.Limit)
}
