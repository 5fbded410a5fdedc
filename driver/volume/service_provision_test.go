package volume

func service(c *fakeCloud) *Volumes { return NewVolumes(c, c, Options{Owner: testOwner}) }
