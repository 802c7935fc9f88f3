import { RouterProvider } from '@tanstack/react-router';

import { router } from '../router';

/** All pages, for who is signed in. */
export const Pages = () => <RouterProvider router={router} />;
