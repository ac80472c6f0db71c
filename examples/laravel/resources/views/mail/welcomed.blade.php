Hello {{ $customer }}, it is good to have you.
