import { RouterProvider } from '@tanstack/react-router';

import { router } from '../router';

/** All pages, for signed-in users. */
export const Pages = () => <RouterProvider router={router} />;
