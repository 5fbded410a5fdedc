package volume

import "fmt"

// Size is a volume's size in bytes. Cinder counts whole GiB, CSI counts bytes; every conversion happens here.
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

// String shows whole GiB where the size is that, bytes otherwise.
func (s Size) String() string {
	if s >= 0 && s%(1<<30) == 0 {
		return fmt.Sprintf("%d GiB", s>>30)
	}
	return fmt.Sprintf("%d bytes", int64(s))
}

// Range is what a request allows a volume's size to be; a zero in either field means that it does not say (CSI specification,
// CapacityRange).
type Range struct {
	Required, Limit Size
}

// Smallest is the smallest size in whole GiB that r allows, at least 1 GiB. InvalidArgument when r holds a negative number,
// OutOfRange when no whole number of GiB lies in it.
func (r Range) Smallest() (Size, error) {
	if r.Required < 0 || r.Limit < 0 {
		return 0, Errorf(InvalidArgument, "the capacity range %d to %d bytes holds a negative number", int64(r.Required), int64(r.Limit))
	}
	size := GiB(max(1, r.Required.RoundUp()))
	if r.Limit > 0 && size > r.Limit || size < 0 {
		return 0, Errorf(OutOfRange, "no whole number of GiB, which is what Cinder makes, lies between %s and %s", r.Required, r.Limit)
	}
	return size, nil
}

// Allows reports whether a volume of that size satisfies r.
func (r Range) Allows(size Size) bool {
	return size >= r.Required && (r.Limit == 0 || size <= r.Limit)
}
