package store

import (
	"context"
	"time"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"
)

// Stack is a stack that was made without Heat. A process that changes one holds it; without the hold it can write nothing of it (ErrFenced).
type Stack struct {
	ID        string
	ProjectID string
	Region    string
	Name      string
	Action    string // CREATE, UPDATE or DELETE, the last one that was begun
	Status    string // of it: IN_PROGRESS, COMPLETE or FAILED; one in progress without a holder was interrupted
	Body      string `gorm:"serializer:sealed"` // its content
	Created   Time
	Holder    string
	HeldUntil Time
	Held      bool `gorm:"-"` // as of when it was read
}

// StackResource is one resource of such a stack.
type StackResource struct {
	ID      string
	StackID string
	Body    string `gorm:"serializer:sealed"` // its content, and its physical ids
}

// Stacks keeps the rows of stacks that Burano makes itself, and of their resources.
type Stacks struct{ *handle }

// Stacks returns the rows of stacks that Burano makes itself, and of their resources.
func (s *Store) Stacks() Stacks { return Stacks{s.handle} }

// AddStack adds a stack without a holder; ErrDuplicate if the project has one of that name in that region.
func (s Stacks) AddStack(ctx context.Context, stack *Stack) error {
	stack.Created = s.clock()
	return wrap(s.rows(ctx).Create(stack).Error, "add a stack")
}

// AddStackOf adds an existing stack with its resources, all or nothing; ErrDuplicate as AddStack.
func (s Stacks) AddStackOf(ctx context.Context, stack *Stack, resources []StackResource) error {
	stack.Created = s.clock()
	return s.transaction(ctx, "take over a stack", func(tx *gorm.DB) error {
		if err := tx.Create(stack).Error; err != nil || len(resources) == 0 {
			return err
		}
		return tx.CreateInBatches(resources, 100).Error
	})
}

// StacksNamed returns the stacks of a project in a region that have this name: one at most.
func (s Stacks) StacksNamed(ctx context.Context, projectID, region, name string) ([]Stack, error) {
	var found []Stack
	err := s.reading(ctx).Omit("body").Where("project_id = ? AND region = ? AND name = ?", projectID, region, name).Find(&found).Error
	return s.withHeld(ctx, found, err, "look for a stack")
}

// Stack returns one stack; ErrNotFound.
func (s Stacks) Stack(ctx context.Context, id string) (Stack, error) {
	var found Stack
	err := s.reading(ctx).Where("id = ?", id).Take(&found).Error
	list, err := s.withHeld(ctx, []Stack{found}, err, "read a stack")
	if err != nil {
		return Stack{}, err
	}
	return list[0], nil
}

// withHeld adds to the read stacks whether they are held.
func (s Stacks) withHeld(ctx context.Context, found []Stack, err error, what string) ([]Stack, error) {
	if err != nil || len(found) == 0 {
		return nil, wrap(err, what)
	}
	now, err := s.databaseClock(s.reading(ctx))
	for i := range found {
		found[i].Held = found[i].Holder != "" && found[i].HeldUntil > now
	}
	return found, wrap(err, what)
}

// HoldStack holds a stack for a term, or goes on holding it. ErrBusy if it has another holder, ErrNotFound if it is gone.
func (s Stacks) HoldStack(ctx context.Context, id, holder string, term time.Duration) error {
	busy := false
	err := s.transaction(ctx, "hold a stack", func(tx *gorm.DB) error {
		var row Stack
		if err := locked(tx).Select("id", "holder", "held_until").Where("id = ?", id).Take(&row).Error; err != nil {
			return err
		}
		now, err := s.databaseClock(tx)
		if err != nil {
			return err
		}
		if busy = row.Holder != "" && row.Holder != holder && row.HeldUntil > now; busy {
			return nil
		}
		return tx.Model(&Stack{}).Where("id = ?", id).Updates(map[string]any{"holder": holder, "held_until": now + Time(term.Microseconds())}).Error
	})
	if err == nil && busy {
		return ErrBusy
	}
	return err
}

// ReleaseStack gives back a stack, if the holder has it.
func (s Stacks) ReleaseStack(ctx context.Context, id, holder string) error {
	return wrap(s.rows(ctx).Model(&Stack{}).Where("id = ? AND holder = ?", id, holder).Updates(map[string]any{"holder": "", "held_until": 0}).Error, "give a stack back")
}

// ReleaseStacks gives back the stacks that a former process held, where there is one process only.
func (s Stacks) ReleaseStacks(ctx context.Context) error {
	return wrap(s.rows(ctx).Model(&Stack{}).Where("holder <> ''").Updates(map[string]any{"holder": "", "held_until": 0}).Error, "give back the stacks of a former process")
}

// ChangeStack writes a stack's present action, and its body.
func (s Stacks) ChangeStack(ctx context.Context, holder string, stack Stack) error {
	return s.asHolder(ctx, stack.ID, holder, "write a stack", func(tx *gorm.DB) error {
		return tx.Model(&Stack{}).Where("id = ?", stack.ID).Select("action", "status", "body").Updates(&stack).Error
	})
}

// RemoveStack removes a stack with its resources.
func (s Stacks) RemoveStack(ctx context.Context, id, holder string) error {
	return s.asHolder(ctx, id, holder, "remove a stack", func(tx *gorm.DB) error {
		return tx.Where("id = ?", id).Delete(&Stack{}).Error
	})
}

// StackResources returns the resources of a stack, in no order.
func (s Stacks) StackResources(ctx context.Context, stackID string) ([]StackResource, error) {
	return readAll[StackResource](s.reading(ctx).Where("stack_id = ?", stackID), "read the resources of a stack")
}

// PutStackResource writes a resource of a stack, which may be new.
func (s Stacks) PutStackResource(ctx context.Context, holder string, resource StackResource) error {
	return s.asHolder(ctx, resource.StackID, holder, "write a resource of a stack", func(tx *gorm.DB) error {
		return tx.Clauses(clause.OnConflict{Columns: []clause.Column{{Name: "id"}}, DoUpdates: clause.AssignmentColumns([]string{"body"})}).Create(&resource).Error
	})
}

// RemoveStackResource removes a resource of a stack.
func (s Stacks) RemoveStackResource(ctx context.Context, holder, stackID, id string) error {
	return s.asHolder(ctx, stackID, holder, "remove a resource of a stack", func(tx *gorm.DB) error {
		return tx.Where("id = ? AND stack_id = ?", id, stackID).Delete(&StackResource{}).Error
	})
}

// asHolder writes something of a stack that the holder has.
func (s Stacks) asHolder(ctx context.Context, id, holder, what string, write func(tx *gorm.DB) error) error {
	return s.transaction(ctx, what, func(tx *gorm.DB) error {
		var row Stack
		if err := locked(tx).Select("id", "holder", "held_until").Where("id = ?", id).Take(&row).Error; err != nil {
			return err
		}
		now, err := s.databaseClock(tx)
		if err != nil {
			return err
		}
		if row.Holder != holder || row.HeldUntil <= now {
			return ErrFenced
		}
		return write(tx)
	})
}
