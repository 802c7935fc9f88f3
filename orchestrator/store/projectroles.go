package store

import (
	"context"
	"errors"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"
)

// ProjectRole is a project in which Burano's service user works with roles of its own. Its row outlives the role: Heat may keep stacks for the service
// user.
type ProjectRole struct {
	ProjectID string `gorm:"primaryKey"`
	Sealed    string // for ProjectRoleOwner: the id of the trust that narrows the service user's rights to these roles in this project
	Roles     Names
	UserID    string // the user who enabled it last
	UserName  string
	Enabled   Time
	Disabled  *Time // nil while it is enabled
}

// ProjectRoleOwner is the owner of the sealed trust of a project's role.
func ProjectRoleOwner(projectID string) string { return "project-role/" + projectID }

// ProjectRoles records the projects in which Burano has a role of its own.
type ProjectRoles struct{ *handle }

// ProjectRoles are the projects in which Burano has a role of its own.
func (s *Store) ProjectRoles() ProjectRoles { return ProjectRoles{s.handle} }

// Get returns the record of Burano's own role in a project, also of a former one; ErrNotFound where it never had one.
func (s ProjectRoles) Get(ctx context.Context, projectID string) (ProjectRole, error) {
	return readOne[ProjectRole](s.reading(ctx).Where("project_id = ?", projectID), "read a project's role")
}

// Enable records that Burano may work in a project with a role of its own, from now on.
func (s ProjectRoles) Enable(ctx context.Context, row *ProjectRole) error {
	row.Enabled, row.Disabled = s.clock(), nil
	return wrap(s.rows(ctx).Clauses(clause.OnConflict{UpdateAll: true}).Create(row).Error, "enable a project's role")
}

// Disable makes tasks begin no more with a project's role; a disabled one is no error.
func (s ProjectRoles) Disable(ctx context.Context, projectID string) error {
	return wrap(s.rows(ctx).Model(&ProjectRole{}).Where("project_id = ? AND disabled IS NULL", projectID).Update("disabled", s.clock()).Error, "disable a project's role")
}

// ofRole adds the delegation of a task whose project lets Burano work with a role of its own; "" where it does not.
func (s Delegations) ofRole(tx *gorm.DB, environment Environment) (id string, err error) {
	var role ProjectRole
	err = tx.Where("project_id = ? AND disabled IS NULL", environment.ProjectID).Take(&role).Error
	if errors.Is(err, gorm.ErrRecordNotFound) {
		return "", nil
	}
	if err != nil {
		return "", err
	}
	row := Delegation{ID: NewID(), EnvironmentID: environment.ID, Kind: Role, Used: true, Roles: role.Roles, Created: s.clock()}
	return row.ID, tx.Create(&row).Error
}
