<?php

declare(strict_types=1);

namespace Weft\Bench\Frameworks\Laravel;

use Illuminate\Database\Eloquent\Model;

final class Person extends Model
{
    public $timestamps = false;

    protected $table = 'frameworks_people';
}
