<?php

declare(strict_types=1);

return ['application_wait' => 60.0];
