package volume

import (
	"context"
	"time"
)

// Selection asks for a page of those of the project's volumes that fit.
type Selection struct {
	Page
	// Status is the status they are in; empty means any.
	Status Status
	// Since is when they last changed, or later, by Cinder's clock and to the second. A volume that has not changed since it was
	// ordered does not fit. The zero Since means any time.
	Since time.Time
}

// Selector is a Cloud that says where its list ends. A Cloud need not be one.
type Selector interface {
	// Select reads a page of the volumes that fit, and whether there are more. NotFound when the marker's volume is gone,
	// Unimplemented where the cloud cannot choose them so. GET /volumes/detail?status=…&updated_at=gte:… (3.60).
	Select(ctx context.Context, s Selection) ([]Volume, bool, error)
}
