package store

import (
	"context"

	"gorm.io/gorm"
)

// SignIn is a browser that is signed in.
type SignIn struct {
	ID      string // a hash of the cookie
	UserID  string
	Tokens  string // sealed
	Created Time
	Used    Time
	Expires Time
}

// SignIns keeps the rows of users who are signed in.
type SignIns struct{ *handle }

// SignIns returns the rows of users who are signed in.
func (s *Store) SignIns() SignIns { return SignIns{s.handle} }

// AddSignIn writes a sign-in. It also deletes ended ones, and the user's longest unused ones, so that at most keep stay with the new one.
func (s SignIns) AddSignIn(ctx context.Context, row SignIn, unusedSince Time, keep int) error {
	return s.transaction(ctx, "write a sign-in", func(tx *gorm.DB) error {
		if err := tx.Where("expires <= ? OR used <= ?", row.Created, unusedSince).Delete(&SignIn{}).Error; err != nil {
			return err
		}
		var others []string
		if err := tx.Model(&SignIn{}).Where("user_id = ?", row.UserID).Order("used DESC, id").Pluck("id", &others).Error; err != nil {
			return err
		}
		if len(others) >= keep {
			if err := tx.Where("id IN ?", others[keep-1:]).Delete(&SignIn{}).Error; err != nil {
				return err
			}
		}
		return tx.Create(&row).Error
	})
}

// SignIn returns a sign-in. ErrNotFound when there is none.
func (s SignIns) SignIn(ctx context.Context, id string) (SignIn, error) {
	return readOne[SignIn](s.reading(ctx).Where("id = ?", id), "read a sign-in")
}

// UseSignIn writes when a sign-in was last used.
func (s SignIns) UseSignIn(ctx context.Context, id string, used Time) error {
	return wrap(s.rows(ctx).Model(&SignIn{}).Where("id = ?", id).Update("used", used).Error, "write the use of a sign-in")
}

// RemoveSignIn ends a sign-in; one that is gone is no error.
func (s SignIns) RemoveSignIn(ctx context.Context, id string) error {
	return wrap(s.rows(ctx).Where("id = ?", id).Delete(&SignIn{}).Error, "end a sign-in")
}
