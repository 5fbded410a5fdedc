package volume

import "context"

// typed is what a fakeCloud has of types and quotas.
type typed struct {
	types    []Type
	standard Type // the default type
	quotas   map[string]Quota
	stubborn bool // a retype is taken and changes nothing
}

func (c *fakeCloud) Types(context.Context) ([]Type, error) { return c.types, c.called("Types") }

func (c *fakeCloud) DefaultType(context.Context) (Type, error) {
	if err := c.called("DefaultType"); err != nil {
		return Type{}, err
	}
	if c.standard.Name == "" {
		return Type{}, Errorf(NotFound, "no default type")
	}
	return c.standard, nil
}

func (c *fakeCloud) Quotas(context.Context) (map[string]Quota, error) {
	return c.quotas, c.called("Quotas")
}

func (c *fakeCloud) Retype(_ context.Context, id ID, typeID string, migrate bool) error {
	if err := c.called("Retype", id, typeID, migrate); err != nil {
		return err
	}
	before := Available
	c.change(id, func(v *Volume) { before, v.Status = v.Status, "retyping" })
	c.later(id, func(v *Volume) {
		v.Status = before
		if c.outcome != "" {
			v.Status = c.outcome
		}
		for _, t := range c.types {
			if t.ID == typeID && !c.stubborn {
				v.Type = t.Name
			}
		}
	})
	return nil
}
