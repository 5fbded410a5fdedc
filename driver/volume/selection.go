package volume

import "time"

// Selection asks for a page of those of the project's volumes that fit.
type Selection struct {
	Page
	// Status is the status they are in; empty means any.
	Status Status
	// Since is when they last changed, or later, by Cinder's clock and to the second. A volume that has not changed since it was
	// ordered does not fit. The zero Since means any time.
	Since time.Time
}
