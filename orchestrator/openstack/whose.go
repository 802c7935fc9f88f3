package openstack

import (
	"errors"
	"fmt"

	"github.com/gophercloud/gophercloud/v2/openstack/identity/v3/tokens"
)

// Named is a user or a project of Keystone, with the name of its domain.
type Named struct{ ID, Name, Domain string }

// Whose returns the user and the project of the project's requests, from the token.
func (p *Project) Whose() (user, project Named, err error) {
	token, ok := p.provider.GetAuthResult().(tokens.CreateResult)
	if !ok {
		return user, project, errors.New("the token from Keystone does not say whose it is")
	}
	who, err := token.ExtractUser()
	if err != nil {
		return user, project, fmt.Errorf("read whose the token is: %w", err)
	}
	where, err := token.ExtractProject()
	if err != nil {
		return user, project, fmt.Errorf("read which project the token is for: %w", err)
	}
	return Named{who.ID, who.Name, who.Domain.Name}, Named{where.ID, where.Name, where.Domain.Name}, nil
}
